#!/usr/bin/env bash
# Phrase scores of an RNN encoder-decoder for Moses (Cho et al. 2014, table 1): WMT'14 English to French.
# Scale paper takes the phrase table that Moses made, phrase-table or phrase-table.gz in the folder that --from names.
# The model (GRUs of size 1000, embeddings of 100, maxout output) trains on the table's phrase pairs, each once however
# often it was seen, with the 15,000 most frequent words of each language, by Adadelta in batches of 64, for 64 epochs
# (the source: three days); every thousandth pair validates.  Deviation: the output matrix is whole, where the source's
# is the product of two.  `seqstruct score-phrases` then writes the table anew with one more score, scored.gz.  BLEU,
# the published figure, comes of tuning and decoding with Moses, which is no part of this project.  What is measured is
# how well the model knows the pairs, and of source phrases whose targets were seen unequally often, which training
# does not tell, in how many the model's best target is one that was seen most often.
# Scale small extracts the table from Multi30k (`seqstruct prepare phrase-table`, by systran-align: pip install
# 'seqstruct[align]'); phrases have four words at most, the model a quarter of the width and a third of the words, and
# three epochs.  Scale smoke takes made-up phrases.
paper=nmt_lectures table=cho family="phrase scores" rows=(RNN) baselines=("random target" "lexical weighting")
licence="a phrase table of your own; Multi30k: for research; smoke: none needed"

cell() {
    local types=15000
    case "$scale" in
        smoke)
            minutes=0.4 disk=2 every=10 size=(tiny=phrases) dataset="made-up phrases" phrases="$runs/data/made-up-phrases"
            kept=(--downloads "$phrases")
            raw phrases ;;
        small)
            minutes=30 disk=400 download=1.3 table=cho-stand-in every=100 types=5000 size=(scale=phrases_small) kept=()
            dataset="Multi30k en-fr task 1, 29000 pairs, phrases of up to 4 words, 5000 words of each language, "
            dataset+="hidden size 250, 3 epochs"
            raw multi30k
            prepare en-fr-words data-prep/multi30k_words.sh "${from[@]}" --src en --trg fr --lowercase
            prepare en-fr-phrases seqstruct prepare phrase-table "$data/text/train" --src en --trg fr --longest 4
            phrases="$data" from=(--from "$data") ;;
        paper)
            minutes=4320 disk=20000 every=1000 size=() dataset="the phrase table that --from names"
            phrases="${given:-FOLDER-OF-PHRASES}" kept=()
            raw phrases ;;
    esac
    prepare phrases data-prep/phrases.sh "${from[@]}" "${kept[@]}" --every "$every" --vocabulary "$types"
    if [[ "$row" != RNN ]]; then
        minutes="$(times "$minutes" 0.1)"
        python -m seqstruct.scoring.phrase_choice "$phrases" --by "${row%% *}" --out "$out/baseline.json"
        record baseline.json
        return
    fi
    fairseq-hydra-train --config-dir configs/nmt_lectures --config-name phrases "${size[@]}" task.data="$data/bin" \
        common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    seqstruct score-phrases "$phrases" --checkpoint "$out/checkpoints/checkpoint_best.pt" --data "$data/bin" \
        --out "$out/scored.gz" --score probability --keep --record "$out/score.json" "${cpu[@]:0:1}"
    python -m seqstruct.scoring.phrase_choice "$out/scored.gz" --out "$out/choice.json"
    record "validation_perplexity[perplexity]=train.log:valid_ppl@best" score.json choice.json \
        "parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
