#!/usr/bin/env bash
# The lineage of translation on Multi30k (Elliott et al. 2016), English to German, each model trained until validation
# no longer improves: one budget, one schedule, one search for all.  Layers of size 128 (recurrent models two, GNMT four;
# ConvS2S 4 + 3, Transformers 3 + 3), dropout 0.3, label smoothing 0.1, joint BPE of 5,000 types, batches of 64 sentences,
# Adam; of three learning rates the one that is best after two epochs; halved where validation stands still, at most 40
# epochs, and five without a gain end it: an hour of one thread and more for a row.  Beam 5, log-probability divided by
# length.  "decoder M": the Transformer with mechanism M in the decoder's self-attention.
# test_2016_flickr alone: the sets of 2017, 2018 and COCO are not in this corpus.  test_..._difference and test_..._p are
# against the Transformer of the same seed, by a paired bootstrap over sentences.  There is no scale paper.
paper=nmt_lectures table=lineage family="translation lineage" baselines=(copy)
licence="Multi30k: for research; made-up sentences at the smoke scale: none needed"
models=(  # row, files of row/ and size/, what it takes beside a Transformer
    "Transformer: transformer transformer 1" "RNNsearch: rnnsearch rnnsearch 1" "Luong general: luong_general 2 1"
    "ConvS2S: convs2s convolution 1" "GNMT: gnmt 4 1.5" "RNN encoder-decoder: rnn_encoder_decoder 1 1"
    "Sutskever: sutskever 2 1" "Sutskever, source not reversed: sutskever_source_not_reversed 2 1" "grConv: grconv 1 1.5"
    "Luong dot: luong_dot 2 1" "Luong concat: luong_concat 2 1" "Luong location: luong_location 2 1"
    "Luong local-m: luong_local_m_general 2 1" "Luong local-p: luong_local_p_general 2 1"
)
rows=("${models[@]%%: *}") smoke_rows=("Luong general" "decoder gated_delta")
for mechanism in linear rfa abc_mlp t2r performer lsh gated_delta superposition nondeterministic_stack; do
    rows+=("decoder $mechanism")
done

cell() {
    local group=transformer size=transformer slower=1.2 model more=()
    for model in "${models[@]}"; do
        [[ "${model%%: *}" != "$row" ]] || read -r group size slower <<<"${model#*: }"
    done
    case "$scale" in
        smoke) minutes=0.4 disk=2 types=150 dataset="400 made-up sentence pairs" ;;
        small) minutes="$(times "$slower" 75)" disk=60 download=1.3 types=5000
            dataset="Multi30k en-de task 1, 29000 pairs, test_2016_flickr, joint BPE of 5000 types" ;;
        paper) echo "its scales are smoke and small" >&2; exit 1 ;;
    esac
    raw multi30k
    prepare "en-de-bpe-$types" data-prep/multi30k.sh "${from[@]}" --src en --trg de --subwords bpe --vocabulary "$types"
    if [[ "$row" == copy ]]; then
        baseline copy --languages en de
        return
    fi
    [[ "$row" != "decoder "* ]] || more=(+model.decoder_self_attention="${row#decoder }")
    if [[ "$row" != Transformer ]]; then
        chosen "$row" "$group" "$size" "${more[@]}"
        own="$searched" path="$out/checkpoints" logs=train.log score=(--against "$out/softmax/generate-test.txt")
        "${training[@]}" common.seed="$seed" checkpoint.save_dir="$path"
    fi
    chosen Transformer transformer transformer
    shared "lineage-transformer-seed$seed" "${training[@]}" common.seed="$seed"
    if [[ "$row" == Transformer ]]; then
        own="$searched" path="$shared" logs="$shared/train.log" score=()
    else
        log=softmax.log translate test "$out/softmax" "$shared/checkpoint_best.pt" --beam 5 --lenpen 1
    fi
    translate test "$out" "$path/checkpoint_best.pt" --beam 5 --lenpen 1
    score=(seqstruct score --from-generate "$out/generate-test.txt" --data "$data" "${score[@]}" --metrics bleu)
    "${score[@]}" chrf --record "$out/score.json"
    "${score[@]:0:6}" --metrics tokenized_bleu --lowercase --record "$out/lowercased.json" "test_{}_lowercased"
    record score.json lowercased.json "$own/measurements.json" "parameters[parameters]=$logs:parameters" \
        "validation_perplexity[perplexity]=$logs:valid_ppl@best/epoch" \
        "training_tokens_per_second[tokens/s]=$logs:wps@median" \
        "decoding_sentences_per_second[sentences/s]=decode.log:sentences_per_second"
}

# NAME ROW SIZE OPTION ...: the words of a training with the rate that a search chose in `training`; its folder, `searched`
chosen() {
    training=(--config-dir configs/nmt_lectures --config-name multi30k row="$2" size="$3_$scale"
        scale="lineage_$scale" "${@:4}" task.data="$data/bin")
    shared "$(slug "$1")-lineage-search" seqstruct search "${training[@]}" \
        --settings configs/nmt_lectures/search.yaml
    searched="$shared" training=(fairseq-hydra-train "${training[@]}" "\$(cat $shared/chosen)")
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
