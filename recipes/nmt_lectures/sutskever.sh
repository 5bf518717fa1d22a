#!/usr/bin/env bash
# Sequence to sequence learning (Sutskever et al. 2014, tables 1 and 2): WMT'14 English to French, ntst14.
# Four LSTM layers of size 1000, words (160,000 and 80,000 types), gradient descent from a rate of 0.7 that falls after
# the fifth of 7.5 epochs, batches of 128, gradients clipped to 5.  Hypotheses are compared by log-probability alone.
# Deviations: eight whole epochs, whose rate is quartered from the sixth on where the paper halves it twice an epoch;
# the whole corpus that data-prep makes, not the selected 12 million pairs.  The rows that rescore another system's
# 1000-best list are `seqstruct rescore` on that list, which is not public, and stand quoted.
# Scale smoke takes made-up pairs; there is no scale small.
paper=nmt_lectures table=sutskever family="published translation tables" baselines=(copy)
licence="WMT, IWSLT and KFTT corpora: see their scripts in data-prep/; smoke: none needed"
rows=("Single "{forward,reversed}" LSTM, beam size 12" "Ensemble of 5 reversed LSTMs, beam size 1"
    "Ensemble of 2 reversed LSTMs, beam size 12" "Ensemble of 5 reversed LSTMs, beam size "{2,12})
smoke_rows=("Ensemble of 2 reversed LSTMs, beam size 12")

cell() {
    members=("$seed") group=sutskever beam="${row##* }"
    case "$row" in
        *forward*) group=sutskever_source_not_reversed ;;
        "Ensemble of 2"*) members=(1 2) ;;
        "Ensemble of 5"*) members=(1 2 3 4 5) ;;
    esac
    case "$scale" in
        smoke)
            minutes=0.5 disk=5 dataset="400 made-up sentence pairs, en-de, words of 30 and 30 types" tiny=(tiny=recurrent)
            target=de
            raw multi30k
            prepare en-de-words-30 data-prep/multi30k.sh "${from[@]}" --src en --trg de --subwords words \
                --vocabulary 30,30 ;;
        small) echo "its scales are smoke and paper; at scale small multi30k.sh has the model on Multi30k" >&2; exit 1 ;;
        paper)
            minutes=5760 disk=15000 tiny=()
            dataset="what data-prep/wmt14.sh --pair en-fr makes, en-fr, words of 160000 and 80000 types"
            target=fr
            raw wmt14
            prepare en-fr-words data-prep/wmt14.sh --pair en-fr "${from[@]}" --subwords words \
                --vocabulary 160000,80000 ;;
    esac
    if [[ "$row" == copy ]]; then baseline copy --languages en "$target" --metrics tokenized_bleu bleu chrf; return; fi
    minutes="$(awk "BEGIN { print ${#members[@]} * $minutes }")"
    for member in "${members[@]}"; do
        shared "$group-seed$member" fairseq-hydra-train --config-dir configs/nmt_lectures --config-name published \
            row="$group" training=sutskever "${tiny[@]}" task.data="$data/bin" common.seed="$member"
        path="${path:+$path:}$shared/checkpoint_best.pt" logs="${logs:+$logs+}$shared/train.log"
    done
    translate test "$out" "$path" --beam "$beam" --lenpen 0
    seqstruct score --from-generate "$out/generate-test.txt" --data "$data" --metrics tokenized_bleu bleu chrf \
        --record "$out/score.json"
    measured=("parameters[parameters]=$logs:parameters"
        "decoding_sentences_per_second[sentences/s]=decode.log:sentences_per_second")
    [[ "$row" != Single* ]] || measured+=("validation_perplexity[perplexity]=$logs:valid_ppl@best"
        "training_tokens_per_second[tokens/s]=$logs:wps@median")
    record score.json "${measured[@]}"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
