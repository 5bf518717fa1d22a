#!/usr/bin/env bash
# A Transformer on Multi30k (Elliott et al. 2016), English to German, trained for one to two hours of one thread.
# 4 + 4 layers of size 128, inner size 256, 4 heads, pre-norm, all embeddings tied, dropout 0.3, label smoothing 0.1;
# joint BPE of 10,000 types; Adam, batches of 4,096 tokens, 30 epochs in which the learning rate falls linearly to 0.
# The last five of the checkpoints kept each 120 updates (about an epoch) are averaged; beam 5, log-probability divided
# by length.
# Papers on multimodal translation report text-only systems as BLEU of lowercased tokens, 38 to 41 for
# test_2016_flickr; the first metric is that, on Moses tokens of detokenised text, and SacreBLEU stands beside it with
# and without case.  An interrupted training goes on where it was, so it may be run in parts.  Scale paper has 50
# epochs; scale smoke takes a few hundred made-up pairs.
paper=nmt_lectures table=multi30k-long family="translation lineage" seeds_paper=5 rows=(Transformer) baselines=(copy)
licence="Multi30k: for research; made-up sentences at the smoke scale: none needed"

cell() {
    types=10000 last=5
    case "$scale" in
        smoke) minutes=0.5 disk=5 types=150 last=2 ;;
        small) minutes=100 disk=450 download=1.3 epochs=30 ;;
        paper) minutes=170 disk=450 download=1.3 epochs=50 ;;
    esac
    dataset="400 made-up sentence pairs, joint BPE of 150 types"
    [[ "$scale" == smoke ]] || dataset="Multi30k en-de task 1, 29000 pairs, test_2016_flickr, joint BPE of 10000 types, \
at most $epochs epochs"
    raw multi30k
    prepare "en-de-bpe-$types" data-prep/multi30k.sh "${from[@]}" --src en --trg de --subwords bpe --vocabulary "$types"
    if [[ "$row" == copy ]]; then
        text=(--hypotheses "$data/raw/test.en")
    else
        fairseq-hydra-train --config-dir configs/nmt_lectures --config-name long scale="long_$scale" \
            task.data="$data/bin" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
        seqstruct average "$out/checkpoints" --last "$last" --out "$out/averaged.pt"
        translate test "$out" "$out/averaged.pt" --beam 5 --lenpen 1
        text=(--from-generate "$out/generate-test.txt")
    fi
    seqstruct score "${text[@]}" --data "$data" --metrics tokenized_bleu bleu --lowercase \
        --record "$out/lowercased.json" "test_{}_lowercased"
    seqstruct score "${text[@]}" --data "$data" --record "$out/score.json"
    [[ "$row" != copy ]] || { record lowercased.json score.json; return; }
    record lowercased.json score.json "validation_perplexity[perplexity]=train.log:valid_ppl@best" \
        "parameters[parameters]=train.log:parameters" "training_tokens_per_second[tokens/s]=train.log:wps@median" \
        "decoding_sentences_per_second[sentences/s]=decode.log:sentences_per_second"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
