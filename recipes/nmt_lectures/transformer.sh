#!/usr/bin/env bash
# Attention is all you need (Vaswani et al. 2017, table 2): WMT'14 English to German and to French, newstest2014.
# Joint BPE of 37,000 types (32,000 for French); Adam with the paper's schedule, label smoothing 0.1, some 25,000 tokens
# a side in a batch; the base model trains for 100,000 updates, the big one for 300,000; the last 5 or 20 of the
# checkpoints kept each 1,500 or 600 updates (ten minutes of the paper's machine) are averaged; beam 4, Wu et al.'s
# (2016) length penalty of 0.6.  Deviations: BPE for French too, where the paper has wordpieces; translations end at 1.5
# times the source and 10, where the paper has the source and 50.  Scale smoke takes made-up pairs; there is no scale
# small.
paper=nmt_lectures table=transformer family="published translation tables"
licence="WMT, IWSLT and KFTT corpora: see their scripts in data-prep/; smoke: none needed"
rows=("EN-"{DE,FR}" Transformer ("{"base model",big}")") baselines=("en-"{de,fr}" copy")
smoke_rows=("EN-DE Transformer (base model)") smoke_baselines=(copy)

cell() {
    target=de types=37000 group=transformer training=transformer last=5
    [[ "${row^^}" != EN-FR* ]] || target=fr types=32000
    minutes=1200
    [[ "$row" != *big* ]] || group="transformer_big_en_$target" training=transformer_big last=20 minutes=5760
    case "$scale" in
        smoke)
            minutes=0.5 disk=5 dataset="400 made-up sentence pairs, en-de, bpe of 150 types" tiny=(tiny=transformer) last=2
            raw multi30k
            prepare en-de-bpe-150 data-prep/multi30k.sh "${from[@]}" --src en --trg de --vocabulary 150 ;;
        small) echo "its scales are smoke and paper; at scale small multi30k.sh has the model on Multi30k" >&2; exit 1 ;;
        paper)
            disk=15000 tiny=() script="wmt14.sh --pair en-$target"
            dataset="what data-prep/${script/ --pair en-de/} makes, en-$target, bpe of $types types"
            raw wmt14
            prepare "en-$target-bpe" data-prep/wmt14.sh --pair "en-$target" "${from[@]}" --subwords bpe \
                --vocabulary "$types" ;;
    esac
    if [[ "$row" == *copy ]]; then baseline copy --languages en "$target" --metrics tokenized_bleu bleu chrf; return; fi
    fairseq-hydra-train --config-dir configs/nmt_lectures --config-name published row="$group" training="$training" \
        "${tiny[@]}" task.data="$data/bin" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    seqstruct average "$out/checkpoints" --last "$last" --out "$out/averaged.pt"
    translate test "$out" "$out/averaged.pt" --beam 4 --task translation_gnmt \
        --length-alpha 0.6 --coverage-beta 0
    score_translation
    record_translation score.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
