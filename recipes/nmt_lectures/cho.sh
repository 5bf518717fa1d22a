#!/usr/bin/env bash
# Phrase scores of an RNN encoder-decoder for Moses (Cho et al. 2014, table 1): WMT'14 English to French.
# Scale paper takes the phrase table that Moses made, phrase-table or phrase-table.gz in the folder that --from names.
# The model (GRUs of size 1000, embeddings of 100, maxout output) trains on the table's phrase pairs, each once however
# often it was seen, with the 15,000 most frequent words of each language, by Adadelta in batches of 64; every thousandth
# pair validates.  `seqstruct score-phrases` then writes the table anew with one more score, scored.gz.  What is measured
# is how well the model knows the pairs; BLEU, the published figure, comes of tuning and decoding with Moses, which is no
# part of this project.  Scale smoke takes made-up phrases; there is no scale small, since no phrase table is free.
paper=nmt_lectures table=cho family="phrase scores" rows=(RNN)
licence="a phrase table of your own; smoke: none needed"

cell() {
    case "$scale" in
        smoke)
            minutes=0.4 disk=2 every=10 tiny=(tiny=phrases) dataset="made-up phrases" phrases="$runs/data/made-up-phrases"
            kept=(--downloads "$phrases") ;;
        small) echo "its scales are smoke and paper: no phrase table is free" >&2; exit 1 ;;
        paper)
            minutes=4320 disk=20000 every=1000 tiny=() dataset="the phrase table that --from names"
            phrases="${given:-FOLDER-OF-PHRASES}" kept=() ;;
    esac
    raw phrases
    prepare phrases data-prep/phrases.sh "${from[@]}" "${kept[@]}" --every "$every" --vocabulary 15000
    fairseq-hydra-train --config-dir configs/nmt_lectures --config-name phrases "${tiny[@]}" task.data="$data/bin" \
        common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    seqstruct score-phrases "$phrases" --checkpoint "$out/checkpoints/checkpoint_best.pt" --data "$data/bin" \
        --out "$out/scored.gz" --score probability --keep --record "$out/score.json" "${cpu[@]:0:1}"
    record "validation_perplexity[perplexity]=train.log:valid_ppl@best" score.json \
        "parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
