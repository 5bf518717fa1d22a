#!/usr/bin/env bash
# Subword regularization (Kudo 2018, table 4): ways to cut words, WMT'14 English to German, newstest2014.
# GNMT (8 layers of size 1024) on words, characters, mixed words and characters (32,000 words), joint BPE of 32,000
# types, unigram pieces, and unigram pieces drawn anew in each epoch out of the 64 best segmentations with alpha 0.1.
# Adam at a rate of 0.0002, dropout 0.2, batches of 128, 10 epochs; beam 8 with length normalisation and coverage
# penalty; the model sees the best segmentation when it translates.  Deviations: no change to gradient descent after
# Adam; the first three rows are Wu et al.'s (2016) in the source, with vocabularies and models of their own.
# Scale smoke takes made-up pairs; there is no scale small.
paper=nmt_lectures table=subword-regularization family="published translation tables" baselines=(copy)
licence="WMT, IWSLT and KFTT corpora: see their scripts in data-prep/; smoke: none needed"
rows=(Word "Character (512 nodes)" "Mixed Word/Character" BPE "Unigram w/o SR (l = 1)"
    "Unigram w/ SR (l = 64, alpha = 0.1)")
smoke_rows=("Unigram w/ SR (l = 64, alpha = 0.1)")

cell() {
    group=gnmt types=32000 kind=sentencepiece longest=()
    case "$row" in
        Word) kind=words types=80000 ;;
        Character*) kind=characters types=1 group=gnmt_characters longest=(--max-length 1000) ;;
        Mixed*) kind=mixed ;;
        BPE) kind=bpe ;;
        *w/\ SR*) group=gnmt_unigram_sampled ;;
    esac
    case "$scale" in
        smoke)
            minutes=0.5 disk=5 tiny=(tiny=recurrent)
            case "$kind" in words) types=30 ;; mixed) types=20 ;; bpe) types=150 ;; sentencepiece) types=35 ;; esac
            dataset="400 made-up sentence pairs, en-de, $kind of $types types"
            raw multi30k
            prepare "en-de-$kind-$types" data-prep/multi30k.sh "${from[@]}" --src en --trg de --subwords "$kind" \
                --vocabulary "$types" "${longest[@]}" ;;
        small) echo "its scales are smoke and paper; at scale small multi30k.sh has the model on Multi30k" >&2; exit 1 ;;
        paper)
            minutes=5760 disk=15000 tiny=() dataset="what data-prep/wmt14.sh makes, en-de, $kind of $types types"
            raw wmt14
            prepare "en-de-$kind" data-prep/wmt14.sh "${from[@]}" --subwords "$kind" --vocabulary "$types" \
                "${longest[@]}" ;;
    esac
    if [[ "$row" == copy ]]; then baseline copy --languages en de --metrics tokenized_bleu bleu chrf; return; fi
    fairseq-hydra-train --config-dir configs/nmt_lectures --config-name published row="$group" training=gnmt \
        "${tiny[@]}" task.data="$data/bin" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    translate test "$out" "$out/checkpoints/checkpoint_best.pt" --task translation_gnmt --length-alpha 0.2 \
        --coverage-beta 0.2 --beam 8
    score_translation
    record_translation score.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
