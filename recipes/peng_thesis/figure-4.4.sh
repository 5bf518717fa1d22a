#!/usr/bin/env bash
# Figure 4.4 and section 4.5.3 of Peng (2022): from softmax attention to RFA and T2R by fine-tuning.
# The decoder's attention, its own and across, of a trained translation model is exchanged, and all parameters are tuned
# on the same pairs with a new optimizer, at the rate at which the softmax model's training ended: so "softmax
# continued", where nothing was changed, goes on as before, and what another row loses is its attention's.  "reset"
# starts the decoder's attention, its projections of queries, keys, values and outputs among it, from initial values.
# Training losses are means over 100 updates (smoke: 5), with label smoothing, in bits of a subword; the softmax model's
# is that of its last epoch.  `updates_to_softmax_loss` is where a curve first is at or below it, and is not recorded
# where none is.  BLEU is of the validation set, before tuning with the softmax model's parameters wherever names and
# shapes agree.  T2R (Kasai et al. 2021) keeps the projections and learns a feature map; the figure has no T2R and no
# "softmax continued".  Scale paper is on IWSLT14 by the model of table-4.6.sh; the thesis does not say how it tunes.
# Scales small and smoke are on Multi30k, no part of the published comparison, at one rate from warm-up to the end.
# `seqstruct plot efficient figure-4.4` draws the records.
paper=peng_thesis table=figure-4.4 family="efficient attention translation" baselines=(copy)
licence="IWSLT14, Multi30k: for research; made-up sentences at the smoke scale: none needed"
rows=(softmax "softmax continued" RFA "RFA reset" "softmax reset" T2R) smoke_rows=("RFA reset")

# NAME CHECKPOINT [OPTION ...]: BLEU of the validation set
scored() {
    log="$1.log" translate valid "$out/$1" "$2" --beam 4 --lenpen 0.6 "${@:3}"
    seqstruct score --from-generate "$out/$1/generate-valid.txt" --data "$data" --subset valid --metrics bleu \
        --record "$out/$1.json" "$1"
    found+=("$1.json")
}

cell() {
    local causal cross found=() first constant=(scale="${scale}_constant")
    case "$scale" in
        smoke) minutes=0.5 disk=5 types=150 updates=10 dataset="400 made-up sentence pairs, 4 epochs" ;;
        small)
            minutes=16 disk=120 download=1.3 types=5000 updates=2000
            dataset="Multi30k de-en task 1 (no part of the published comparison), 3 + 3 layers, 8 epochs"
            ;;
        paper) minutes=4400 disk=9000 updates=3000 dataset="IWSLT14 de-en, as its script of data-prep makes it" ;;
    esac
    dataset+=", then $updates updates"
    if [[ "$scale" == paper ]]; then
        first=(scale=paper corpus=iwslt14_de_en) constant=(scale=paper corpus=iwslt14_de_en_constant)
        raw iwslt14
        prepare iwslt14-de-en data-prep/iwslt14.sh "${from[@]}"
    else
        first=("${constant[@]}")
        raw multi30k
        prepare "de-en-bpe-$types" data-prep/multi30k.sh "${from[@]}" --src de --trg en --vocabulary "$types"
    fi
    if [[ "$row" == copy ]]; then
        seqstruct score --hypotheses "$data/raw/valid.de" --data "$data" --subset valid --metrics bleu \
            --record "$out/copy.json" validation_bleu
        record copy.json
        return
    fi
    config=(--config-dir configs/peng_thesis/translation --config-name train)
    common=(task.data="$data/bin" common.seed="$seed")
    shared "translation-base-seed$seed" fairseq-hydra-train "${config[@]}" row=base "${first[@]}" "${common[@]}"
    start="$shared/checkpoint_best.pt" losses=("$shared/train.log")
    if [[ "$row" == softmax ]]; then
        scored validation_bleu "$start"
    else
        case "$row" in
            RFA*) group=rfa_gaussian causal="rfa(features=128)" cross="rfa(features=256)" ;;
            softmax*) group=base causal=softmax cross=softmax ;;
            T2R) group=t2r_32 causal="t2r(features=32)" cross="t2r(features=32)" ;;
        esac
        if [[ "$row" == *reset ]]; then
            python -m seqstruct.harness.without "$start" "decoder.layers.*_attn.*" --out "$out/start.pt"
            start="$out/start.pt"
        fi
        scored validation_bleu_before "$start" --model-overrides \
            "{'decoder_self_attention': '$causal', 'cross_attention': '$cross'}"
        fairseq-hydra-train "${config[@]}" row="$group" "${constant[@]}" "${common[@]}" \
            optimization.max_update="$updates" checkpoint.finetune_from_model="$start" \
            checkpoint.save_dir="$out/checkpoints"
        scored validation_bleu "$out/checkpoints/checkpoint_last.pt"
        losses+=("$out/train.log")
    fi
    python -m seqstruct.harness.losses "${losses[@]}" --out "$out/losses.json"
    record "${found[@]}" losses.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
