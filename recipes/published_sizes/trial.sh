#!/usr/bin/env bash
# Fifty updates of trainings as published, on made-up text of the published number of types: do they fit, how fast are
# they?  A row is RECIPE, ROW: that recipe's training at scale paper, with its own command, but for data, seed and length.
# Scale small is on the processor in float32, without accumulation of gradients, and where a published batch takes minutes
# or more than 24 GiB there it has fewer tokens, as the data say; paper is on a GPU, with all that is published.  Words
# mean nothing, so losses do not either.  Smoke: three updates of the smallest.
paper=published_sizes table=trial family="published sizes"
licence="none needed: words are drawn"
smoke_rows=("structured_attention/table-3, words, simple")
rows=("${smoke_rows[0]}" "structured_attention/table-3, words, structured" "nmt_lectures/cho, RNN"
    "stack_attention/table-2, Tf" "stack_attention/table-2, Tf+Sup" "stack_attention/table-2, Tf+Nd"
    "stack_attention/table-3, Tf+Nd d=160" "peng_thesis/table-3.2, AWD-LSTM" "peng_thesis/table-3.2, PaLM-U"
    "peng_thesis/table-4.3, small BASE" "peng_thesis/table-4.3, small RFA-GATE-Gaussian"
    "peng_thesis/table-4.3, 16 layers ABC-MLP 32" "peng_thesis/table-4.3, 32 layers T2R 32"
    "peng_thesis/table-4.4, BASE" "peng_thesis/table-4.4, ABC-MLP 32-8"
    "nmt_lectures/luong, local-p (general)" "nmt_lectures/sutskever, Single forward LSTM, beam size 12"
    "nmt_lectures/convs2s, WMT'16 en-ro ConvS2S (BPE 40K)" "nmt_lectures/transformer, EN-DE Transformer (base model)"
    "nmt_lectures/transformer, EN-DE Transformer (big)" "nmt_lectures/subword-regularization, BPE"
    "nmt_lectures/sentencepiece, ja-en SentencePiece" "peng_thesis/table-2.1, DM SPIGOT" "peng_thesis/table-2.1, DM SA"
    "peng_thesis/table-4.5, "{ListOps,IMDb,AAN}" RFA-Gaussian" "peng_thesis/table-5.5b, ABC-MLP 128-64"
    "peng_thesis/table-6.3, RRNN(F) 3 layers 24M" "structured_attention/table-5, Structured attention"
    "peng_thesis/table-5.6, MNLI BASE" "peng_thesis/table-5.6, MNLI ABC-MLP 128" "peng_thesis/table-3.1, PaLM-S"
    "peng_thesis/table-2.2, SPIGOT" "peng_thesis/table-6.5, SST RRNN(F)")
recipes="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

# RECIPE ROW [CONFIG]: the words of its own training at scale paper, or of the last one that it shares with others, or of
# that by CONFIG, in the array `training`, without data, seed, folder and what other trainings or searches leave to it
published() {
    local kind count word words found=""
    training=()
    while IFS= read -r -d '' kind && IFS= read -r -d '' count; do
        words=()
        for ((; count; count--)); do IFS= read -r -d '' word; words+=("$word"); done
        [[ "${words[1]:-}" == fairseq-hydra-train && "$found $kind" != "train shared" ]] || continue
        [[ -z "${3:-}" || " ${words[*]} " == *" --config-name $3 "* ]] || continue
        training=() found="$kind"
        for word in "${words[@]:2}"; do
            case "$word" in
                task.data=* | common.seed=* | checkpoint.* | +task.pretrained_parser=* | "\$("*) ;;
                *) training+=("$word") ;;
            esac
        done
    done < <(row="$2" seed=1 scale=paper out=OUT runs=RUNS max_minutes="" bash "$recipes/$1.sh")
    [[ "${#training[@]}" -gt 0 ]] || { echo "$1.sh has no training of $2 at scale paper" >&2; exit 1; }
}

cell() {
    local recipe="${row%%, *}" updates=50 memory more=() own=() words most="" folder=/bin config=""
    minutes=15 disk=50 download=0 threads=2
    case "$recipe" in
        nmt_lectures/cho) words=(--languages en fr --types 15000 15000 --length 4 --longest 10 --sentences 30000) ;;
        nmt_lectures/luong) words=(--languages en de --types 50000 50000 --length 25) ;;
        nmt_lectures/sutskever) words=(--languages en fr --types 160000 80000 --length 27 30) most=4096 ;;
        nmt_lectures/convs2s) words=(--languages en ro --types 40000 --length 28) ;;
        nmt_lectures/transformer) words=(--languages en de --types 37000 --length 28)
            [[ "$row" != *"(big)" ]] || most=2048 ;;
        nmt_lectures/subword-regularization) words=(--languages en de --types 32000 --length 28) most=2048 ;;
        peng_thesis/table-3.2) words=(--types 33278 --length 25 --sentences 40000) minutes=6 ;;
        peng_thesis/table-4.3) words=(--types 267740 --length 25 --sentences 40000) most=1024
            [[ "$row" != *", small "* ]] || most=4096 ;;
        peng_thesis/table-4.4) words=(--languages en de --types 32768 --length 28) ;;
        stack_attention/table-2) words=(--types 23000 --length 24 --sentences 5000) minutes=10 ;;
        stack_attention/table-3) words=(--languages de en --types 32000 --length 28) ;;
        structured_attention/table-3) words=(--languages ja en --types 11000 7000 --length 26 --longest 50) minutes=10 ;;
        nmt_lectures/sentencepiece) words=(--languages ja en --types 8000 --length 30) minutes=6 ;;
        peng_thesis/table-2.1) words=(--raw graphs --types 32000 --length 22 --sentences 2000 --labels 59) minutes=10
            folder="" own=(parsing --tags xpos --graphs dm train=RAW/train.sdp valid=RAW/valid.sdp
                --trees train=RAW/train.conllu valid=RAW/valid.conllu) ;;
        peng_thesis/table-2.2) words=(--raw graphs --types 32000 --length 22 --sentences 2000 --labels 59) minutes=10
            folder="" own=(parsing --tags xpos --max-length 60 --graphs graphs train=RAW/train.sdp valid=RAW/valid.sdp
                --classes train=RAW/train.tsv valid=RAW/valid.tsv) ;;
        peng_thesis/table-3.1) words=(--raw trees --types 10000 --length 21 --sentences 42000) minutes=6
            own=(ptb-trees --corpus parses --leave-out-longer --from RAW) ;;
        peng_thesis/table-6.5) words=(--raw texts --types 16000 --length 19 --sentences 6920 --vectors 300) minutes=3
            folder="" own=(text-classification --train RAW/train.tsv --valid RAW/valid.tsv --test RAW/test.tsv
                --vectors RAW/vectors.txt) more=(+model.hidden_size=300) ;;
        peng_thesis/table-6.3) words=(--types 10000 --length 22 --sentences 40000) minutes=10 ;;
        peng_thesis/table-4.5) folder="" most=4096
            case "$row" in  # of IMDb and AAN types are bytes
                *" ListOps "*) words=(listops --lengths 501:1999 --train 2000 --valid 100 --test 100) ;;
                *" IMDb "*) words=(--raw texts --types 256 --length 1300 --longest 4000 --sentences 2000)
                    own=(text-classification --train RAW/train.tsv --valid RAW/valid.tsv --test RAW/test.tsv) ;;
                *) words=(--raw pairs --types 256 --length 4000 4000 --longest 4000 --sentences 2000)
                    own=(text-classification --pairs --train RAW/train.tsv --valid RAW/valid.tsv --test RAW/test.tsv) ;;
            esac ;;
        peng_thesis/table-5.5b) words=(--languages es en --types 30000 --length 22 --documents 127) ;;
        peng_thesis/table-5.6) words=(--types 50260 --length 25) most=1024 config=continue
            more=(checkpoint.finetune_from_model=null) ;;
        structured_attention/table-5) words=(--raw pairs --types 36000 --length 14 8 --labels 3 --vectors 300) minutes=10
            folder="" own=(sentence-pairs --train RAW/train.tsv --valid RAW/valid.tsv --vectors RAW/vectors.txt) ;;
        *) echo "$row: no published size of its data is known" >&2; exit 1 ;;
    esac
    published "$recipe" "${row#*, }" "$config"
    case "$scale" in
        smoke) updates=3 minutes=0.3 folder=/bin own=()
            words=(--languages ja en --types 60 50 --length 8 --sentences 300) ;;
        small) more+=("optimization.update_freq=[1]" ${most:+"dataset.max_tokens=$most"}) ;;
    esac
    [[ "$scale" == paper ]] || more+=(common.cpu=true common.fp16=false common.amp=false dataset.num_workers=0)
    dataset="${words[*]}; $updates updates"
    [[ "$scale" != small || -z "$most" ]] || dataset+=" of at most $most tokens"
    [[ "${words[0]}" == -* ]] && words=(made-up "${words[@]}") dataset="made up: $dataset"
    prepare "${words[0]}" seqstruct prepare "${words[@]}"
    if [[ "${#own[@]}" -gt 0 ]]; then
        own=("${own[@]//RAW/$data}")
        prepare "${own[0]}" seqstruct prepare "${own[@]}"
    fi
    fairseq-hydra-train "${training[@]}" task.data="$data$folder" common.seed="$seed" "${more[@]}" \
        optimization.max_update="$updates" common.log_interval=1 dataset.disable_validation=true \
        checkpoint.no_save=true checkpoint.save_dir="$out/checkpoints"
    memory="peak_memory[MiB]=steps.json:mebibytes"
    [[ "$scale" != paper ]] || memory="gpu_memory[GiB]=train.log:gpu_memory"
    record "parameters[parameters]=train.log:parameters" "$memory" \
        "tokens_per_update[tokens]=train.log:wpb@median" "training_tokens_per_second[tokens/s]=train.log:wps@median"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
