#!/usr/bin/env bash
# Learning rates of figure 2 of Stack Attention at scale small: three values for each model, spread over the published
# range, two epochs of marked reversal; figure-2.sh takes, for each model in all languages, the one that ends lowest on
# the validation strings.
paper=stack_attention table=figure-2-pilot family="stack attention language models"
licence="none needed, the strings are sampled"
rows=({Tf,Tf+Sup,Tf+Nd,LSTM,LSTM+Sup,LSTM+Nd}" lr="{0.001,0.0025,0.006}) baselines=(5-gram)
smoke_rows=("LSTM lr=0.006")

cell() {
    model="${row% *}" disk=10
    case "$scale" in
        smoke) minutes=0.4 counts=(200 50 2) lengths=(5:20 5:30) ;;
        small) minutes=0.7 counts=(10000 1000 50) lengths=(10:40 10:60) ;;
        paper) minutes=1.2 counts=(10000 1000 100) lengths=(40:80 40:100) ;;
    esac
    case "$model" in Tf+Nd) slower=1.9 ;; LSTM) slower=0.4 ;; LSTM+Nd) slower=3 ;; *) slower=1 ;; esac
    minutes="$(times "$minutes" "$slower")"
    dataset="marked-reversal, ${counts[0]} strings of length ${lengths[0]/:/ to }, test to ${lengths[1]#*:}, 2 epochs"
    prepare_strings "marked-reversal-$scale-seed$seed" marked-reversal
    [[ "$row" != 5-gram ]] || { baseline 5-gram; return; }
    fairseq-hydra-train --config-dir configs/stack_attention/cfl --config-name train row="$(slug "$model")" \
        scale="$scale" epochs=pilot "optimization.lr=[${row#*=}]" task.data="$data" common.seed="$seed" \
        checkpoint.save_dir="$out/checkpoints"
    validate_strings valid
    record "validation_cross_entropy_difference[nats per symbol]=validate.log:valid_difference/string length"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
