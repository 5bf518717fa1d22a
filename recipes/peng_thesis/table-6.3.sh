#!/usr/bin/env bash
# Table 6.3 of Peng (2022): perplexity of a word, end of sentence counted, of LSTMs and four rational recurrences within
# a budget of parameters.  The text is one stream, read in segments of 35 tokens with the state carried on; embeddings
# are tied.  Scale paper is the Penn Treebank in the published setting, as far as it is given; what chapter 6 leaves to
# Lei et al. (2017b) is: 32 rows, SGD of rate 1.0 (0.5 for C and F) that shrinks by 0.98 an epoch from the 175th of 300
# on, clipping at 5, weight decay of 1e-5, dropout of 0.2 of the inputs of layers.  Dropout of word vectors and output
# is 0.6 within 10M and 0.7 within 24M, which is ours: the thesis adapts it to each hidden size and gives no numbers.
# Scales small and smoke are table 6.3-stand-in: a part of the Brown corpus, a tenth of the parameters, and Adam, whose
# rate, with the variance of first states, is chosen by validation for each recurrence (search.yaml).  Row LSTM 2 layers
# 10M is not in the source: the rows of 10M can be compared with it.
paper=peng_thesis table=6.3 family="rational language models"
licence="Penn Treebank: LDC; Brown: non-commercial; made-up sentences at the smoke scale: none needed"
rows=("LSTM 2 layers 24M" "LSTM 3 layers 24M" {LSTM,"RRNN(B)","RRNN(B) max-plus","RRNN(C)","RRNN(F)"}" 2 layers 10M"
      {"RRNN(B)","RRNN(B) max-plus","RRNN(C)","RRNN(F)"}" 3 layers 24M")
smoke_rows=("RRNN(F) 2 layers 10M")
baselines=(bigram trigram 5-gram)

cell() {
    corpus=ptb words=(--vocabulary 0 --train-lines 0) disk=300 download=3.3 minutes=0.4 table=6.3-stand-in
    tuned=() searched=()
    case "$scale" in
        smoke) dataset="200 made-up sentences" ;;
        small) corpus=brown words=(--vocabulary 5000 --train-lines 8000) disk=50 minutes=2.5
               dataset="Brown corpus, 8000 training sentences, 5000 types, a 10th of the row's parameters, 5 epochs of "
               dataset+="Adam (published: Penn Treebank, 42068 sentences, 10000 types)" ;;
        paper) dataset="Penn Treebank, text of Mikolov et al. (2010), at most 300 epochs" minutes=240 table=6.3 ;;
    esac
    raw "${corpus/brown/nltk}"
    prepare "$corpus-$scale" "data-prep/$corpus.sh" "${from[@]}" "${words[@]}"
    case "$row" in *gram) baseline "$row"; return ;; esac
    size="$(slug "${row##* }")" model="$(slug "${row% * layers *}")"
    [[ "$scale" == paper ]] || size+="_$scale"
    case "$row" in *24M) minutes="$(times 2 "$minutes")" ;; esac
    [[ "$row" != "LSTM 2 "* ]] || model=lstm_2
    settings=(--config-dir configs/peng_thesis/rational_lm --config-name train scale="$scale" task.data="$data/bin")
    if [[ "$scale" != paper ]]; then
        shared "search-${model%_2}-6.3-$scale" seqstruct search "${settings[@]}" row="${model%_2}" size="10m_$scale" \
            --settings configs/peng_thesis/rational_lm/search.yaml
        tuned=("\$(cat $shared/chosen)") searched=("$shared/measurements.json")
    fi
    fairseq-hydra-train "${settings[@]}" row="$model" size="$size" "${tuned[@]}" common.seed="$seed" \
        checkpoint.save_dir="$out/checkpoints"
    fairseq-validate "$data/bin" --user-dir seqstruct --task stream_language_modeling --valid-subset valid,test \
        --path "$out/checkpoints/checkpoint_best.pt" --batch-size 1 --model-overrides "{'tokens_per_sample': 500}" \
        --log-format json "${cpu[@]}"
    record "validation_perplexity[perplexity]=validate.log:2^valid_loss" \
        "test_perplexity[perplexity]=validate.log:2^test_loss" "${searched[@]}"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
