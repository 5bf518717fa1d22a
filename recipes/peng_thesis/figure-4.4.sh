#!/usr/bin/env bash
# Figure 4.4 and section 4.5.3 of Peng (2022): from softmax attention to RFA and T2R by fine-tuning; a stand-in.
# The thesis fine-tunes a translation model of IWSLT14; here it is the small language model BASE of table-4.3.sh, on
# Brown, with a new optimizer and a rate that falls to 0, as that of the softmax model did: scales smoke and small
# alone; for translation see table 4.6.  "reset" starts attention, the projections of queries, keys, values and outputs
# among it, from initial values; "softmax continued" is what the same updates do where nothing was changed.  Training
# losses are means over 100 updates (smoke: 25), in bits of a subword; the softmax model's is that of its last epoch.
# `updates_to_softmax_loss` is where a curve first is at or below it, and is not recorded where none is.  T2R (Kasai et
# al. 2021) keeps the projections and learns a feature map.  `seqstruct plot efficient figure-4.4` draws the records.
paper=peng_thesis table=figure-4.4 family="efficient attention language models"
licence="Brown: non-commercial; made-up sentences at the smoke scale: none needed"
rows=(softmax "softmax continued" RFA "RFA reset" "softmax reset" T2R)
smoke_rows=("RFA reset")
baselines=(bigram trigram 5-gram)

# METRIC CHECKPOINT [OPTION ...]: the perplexity of a word of the validation text
perplexity() {
    log="$1.log" fairseq-eval-lm "$data/bin" --user-dir seqstruct --path "$2" --gen-subset valid \
        --task language_modeling --sample-break-mode none --batch-size 8 --context-window 0 --tokens-per-sample 512 \
        "${cpu[@]}" "${@:3}"
    found+=("$1=$out/$1.log:$data/text/valid.txt")
}

cell() {
    found=() disk=100 minutes=20 vocabulary=8000
    dataset="Brown corpus (no part of the published comparison), 51752 training sentences, 8000 subwords of them, 12 "
    dataset+="epochs; then 3000 updates"
    case "$scale" in
        smoke) dataset="300 made-up sentences; then 10 updates" minutes=0.5 disk=2 vocabulary=500 ;;
        paper) echo "its scales are smoke and small; for translation see table-4.6.sh" >&2; exit 1 ;;
    esac
    raw nltk
    prepare brown data-prep/brown.sh "${from[@]}" --subwords bpe --vocabulary "$vocabulary"
    if [[ "$row" == *gram ]]; then
        seqstruct baseline "$row" "$data" --out "$out/baseline.json"
        record "validation_perplexity[perplexity]=baseline.json:validation_perplexity"
        return
    fi
    training=(--config-dir configs/peng_thesis/efficient_lm --config-name train scale="$scale" task.data="$data/bin"
              common.seed="$seed")
    shared softmax-lm fairseq-hydra-train "${training[@]}" row=base
    start="$shared/checkpoint_best.pt" losses=("$shared/train.log")
    if [[ "$row" == softmax ]]; then
        perplexity validation_perplexity "$start"
    else
        case "$row" in RFA*) group=rfa_gaussian plan="rfa(features=128)" ;; softmax*) group=base plan=softmax ;;
                       T2R) group=t2r_32 plan="t2r(features=32)" ;; esac
        if [[ "$row" == *reset ]]; then
            python -m seqstruct.harness.without "$start" .self_attn. --out "$out/start.pt"
            start="$out/start.pt"
        fi
        perplexity validation_perplexity_before "$start" --model-overrides "{'decoder_self_attention': '$plan'}"
        fairseq-hydra-train "${training[@]}" row="$group" tuning="$scale" checkpoint.finetune_from_model="$start" \
            checkpoint.save_dir="$out/checkpoints"
        perplexity validation_perplexity "$out/checkpoints/checkpoint_best.pt"
        losses+=("$out/train.log")
    fi
    python -m seqstruct.harness.word_perplexity "${found[@]}" --out "$out/found.json"
    python -m seqstruct.harness.losses "${losses[@]}" --out "$out/losses.json"
    record found.json losses.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
