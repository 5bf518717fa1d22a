#!/usr/bin/env bash
# Table 2 of FLaRe: accuracy of recognisers of formal languages, trained on strings of length 0 to 40 and tested to 500,
# with the paper's RNN, LSTM and Transformer, and beside them Transformers and LSTMs with stacks, the delta rule (with
# eigenvalues from 0 to 1, or "negative" from -1 to 1) and rational recurrences, each with about 64,000 parameters.
# Scale paper is the published setting: the data are drawn once for a language, and of the ten runs of a row each draws
# its learning rate, batch size and, in rows with auxiliary losses (LM+NS), their weights.  Scale small keeps strings
# to train on, optimizer and numbers of parameters, and has one batch size for all models, one rate for Transformers and
# one for the others, RNN, LSTM and RRNN of one layer, since those of five learn too late, fewer epochs and a tenth of the
# test strings.  Other languages than the six of the table: print a cell, and write another name after `prepare flare`.
# Deviations: see seqstruct/data/recognition/languages.py and seqstruct/models/sentences/recognizer.py.
paper=flare table=2 family="recognisers of formal languages" seeds_small=3 seeds_paper=10
licence="none needed, the strings are sampled"
languages=(repeat-01 parity dyck-2-3 majority marked-reversal unmarked-reversal)
models=(RNN LSTM Tf Tf+Sup Tf+Nd LSTM+Sup LSTM+Nd delta "delta negative" RRNN)
rows=() baselines=() auxiliary=()
for language in "${languages[@]}"; do
    for model in "${models[@]}"; do rows+=("$language $model"); done
    auxiliary+=("$language "{RNN,LSTM,Tf}", LM+NS") baselines+=("$language "{trivial,counting}" rule")
done
paper_rows=("${rows[@]}" "${auxiliary[@]}")
smoke_rows=("parity LSTM" "dyck-2-3 Tf+Nd" "marked-reversal Tf, LM+NS") smoke_baselines=("parity counting rule")

cell() {
    language="${row%% *}" model="${row#* }" disk=10
    case "$scale" in
        smoke) minutes=0.3 sizes=(--train 300 --valid 60 --valid-long 60 --test 50 --test-lengths 0:100) ;;
        small) minutes=5 sizes=(--test 500) ;;
        paper) minutes=60 sizes=() ;;
    esac
    dataset="$language, strings of length 0 to 40, validated to 80 too, tested to 500"
    [[ "$scale" == paper ]] || dataset+=" (16 epochs of 10000 strings, 500 test strings, recurrent networks of one layer; published: 1000 epochs, 5010, five layers)"
    prepare "$language-$scale" seqstruct prepare flare "$language" "${sizes[@]}"
    [[ "$model" != *" rule" ]] || { baseline "$model"; return; }
    drawn=()
    if [[ "$scale" == paper ]]; then
        drawn=("optimization.lr=[$(log_uniform lr 0.0001 0.01)]" "dataset.max_tokens=$(whole tokens 128 4096)")
    fi
    if [[ "$model" == *", LM+NS" ]]; then
        drawn+=("criterion.language_modeling_weight=$(log_uniform lm 0.01 10)" task.next_symbols=true
            "criterion.next_symbols_weight=$(log_uniform ns 0.01 10)")
    fi
    group="$(slug "${model%,*}")"
    [[ "$scale" == paper || ! "$group" =~ ^(rnn|lstm|rrnn)$ ]] || group+=_one_layer
    fairseq-hydra-train --config-dir configs/flare/recognition --config-name train row="$group" scale="$scale" \
        "${drawn[@]}" task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    fairseq-validate "$data" --user-dir seqstruct --task recognition --criterion recognition_cross_entropy \
        --report-by-length --path "$out/checkpoints/checkpoint_best.pt" --valid-subset valid,valid_long,test \
        --max-tokens 8192 --required-batch-size-multiple 1 --log-format json "${cpu[@]}"
    record "validation_accuracy[%]=validate.log:valid_accuracy/string length" \
        "long_validation_accuracy[%]=validate.log:valid_long_accuracy/string length" \
        "test_accuracy[%]=validate.log:test_accuracy/string length" \
        "validation_baseline[%]=validate.log:valid_baseline/string length" \
        "long_validation_baseline[%]=validate.log:valid_long_baseline/string length" \
        "test_baseline[%]=validate.log:test_baseline/string length" "parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
