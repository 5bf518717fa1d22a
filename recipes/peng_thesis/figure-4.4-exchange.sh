#!/usr/bin/env bash
# Beside figure 4.4 of Peng (2022): a GPT-2 of Hugging Face's transformers gets other attention in all layers by
# `seqstruct convert`, which fits each layer to the softmax that it replaces, and tunes all of the model.
# The small GPT-2 of seqstruct.exchange.small_gpt2 is trained on Brown here; scales smoke and small alone.
# Perplexities are of a subword of the validation text, in blocks of 256.  `recovered_by_transfer` and `recovered` are
# shares of the perplexity lost at the swap that are won back; the latter is above 1 where the tuned model is better than
# the old one, which has seen fewer updates: the row "softmax" is tuned as the others are, without a swap.  A step of
# decoding is one token of each of 32 texts after 2,048.
paper=peng_thesis table=figure-4.4-exchange family="efficient attention language models"
licence="Brown: non-commercial; made-up sentences at the smoke scale: none needed"
rows=(softmax T2R RFA)
smoke_rows=(T2R) baselines=(bigram trigram 5-gram)

cell() {
    disk=100 minutes=25 vocabulary=8000
    small=(--updates 4800) transfer=1200 fitting=(--tune 600 --decode 2048 --texts 32)
    dataset="Brown corpus (no part of the published comparison), 51752 training sentences, 8000 subwords of them; 4800 "
    dataset+="updates of 2048 tokens, then 1200 of attention transfer and 600 of all parameters"
    case "$scale" in
        smoke) dataset="300 made-up sentences; 10 updates, then 3 and 3" minutes=1 disk=10 vocabulary=500
               small=(--updates 10 --embed-dim 16 --layers 2 --heads 2 --length 64 --positions 256)
               transfer=3 fitting=(--tune 3 --decode 64 --texts 2 --length 64) ;;
        paper) echo "its scales are smoke and small" >&2; exit 1 ;;
    esac
    raw nltk
    prepare brown data-prep/brown.sh "${from[@]}" --subwords bpe --vocabulary "$vocabulary"
    if [[ "$row" == *gram ]]; then
        seqstruct baseline "$row" "$data" --pieces --out "$out/baseline.json"
        record "validation_perplexity[perplexity]=baseline.json:validation_perplexity"
        return
    fi
    shared "gpt2-$scale-seed$seed" python -m seqstruct.exchange.small_gpt2 "$data" "${small[@]}" --seed "$seed"
    case "$row" in
        softmax) plan=softmax transfer=0 ;;
        T2R) plan="t2r(features=32)" ;;
        RFA) plan="rfa(features=128)" ;;
    esac
    seqstruct convert "$shared" --plan "$plan" --text "$data/text/train.txt" --valid "$data/text/valid.txt" \
        --transfer "$transfer" "${fitting[@]}" --seed "$seed" --out "$out/model" --record "$out/found.json"
    record found.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
