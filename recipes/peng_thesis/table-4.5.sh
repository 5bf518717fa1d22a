#!/usr/bin/env bash
# Table 4.5 of Peng (2022): long texts in a transformer encoder, of the Long Range Arena (Tay et al. 2021), whose models
# and training these are.  ListOps is drawn by its own generator; texts of IMDb and AAN, pairs of them for AAN, are read
# byte by byte and cut after 4,000.  RFA has D = 64 on IMDb and 128 elsewhere, as the thesis; sizes of other mechanisms
# are ours: blocks of 64 tokens, 256 slots and features.  No row drops attention weights, which most mechanisms do not
# have; residual dropout is that of the architecture.  The table's speed and memory are table-4.5-speed.sh's.
# Scales small and smoke are table 4.5-stand-in: ListOps with formulas of 10 to 60 tokens (10 to 30), of which a small
# model learns more than the first operator tells: two layers of size 64, ten epochs; blocks of 16 tokens, 16 slots, 64
# features, and ABC-MLP is one row more.
paper=peng_thesis table=4.5 family="efficient attention classifiers" licence="ListOps is made; IMDb, AAN: for research"
models=(Transformer RFA-Gaussian Linear Performer Linformer "Local attention" "Big Bird" Sinkhorn Reformer Synthesizer)
rows=() paper_rows=() baselines=("ListOps majority" "ListOps first token") paper_baselines=()
for model in "${models[@]}" ABC-MLP; do rows+=("ListOps $model"); done
for task in ListOps IMDb AAN; do
    for model in "${models[@]}"; do paper_rows+=("$task $model"); done
    paper_baselines+=("$task majority" "$task first token")
done
smoke_rows=("ListOps ABC-MLP")

cell() {
    task="${row%% *}" name="${row#* }" size=("scale=$scale") features=64 slots=16 block=16
    case "$scale" in
        smoke) formulas=200 shape="1 layers of size 16" lengths=10:30 updates=14 minutes=0.4 disk=1 ;;
        small) formulas=40000 shape="2 layers of size 64" lengths=10:60 updates=12500 minutes=5 disk=15 size=(scale=short) ;;
        paper) formulas=96000 lengths=501:1999 updates=5000 minutes=240 disk=900
               features=256 slots=256 block=64 size+=("size=${task,,}") ;;
    esac
    dataset="$formulas formulas of ${lengths/:/ to } tokens, $updates updates"
    if [[ "$task" == ListOps ]]; then
        held_out=2000
        [[ "$scale" != smoke ]] || held_out=20
        prepare "listops-$scale" data-prep/listops.sh --lengths "$lengths" --train "$formulas" --valid "$held_out" \
            --test "$held_out"
    else
        raw "${task,,}"
        dataset="$task by bytes, cut after 4000, as its script of data-prep makes it"
        prepare "${task,,}" "data-prep/${task,,}.sh" "${from[@]}"
    fi
    [[ "$scale" == paper ]] || table=4.5-stand-in dataset+=", $shape (published: 96000, 501 to 1999, 6 of 512)"
    case "$name" in
        majority | "first token") baseline "$name"; return ;;
        Linear | Synthesizer | Transformer) group="$(slug "$name")" ;;
        RFA-Gaussian | Performer) group="$(slug "$name")_$features" ;;
        ABC-MLP | Linformer) group="$(slug "$name")_$slots" ;;
        *) group="$(slug "$name")_$block" ;;
    esac
    [[ "$row" != "IMDb RFA-Gaussian" ]] || group=rfa_gaussian_128
    fairseq-hydra-train --config-dir configs/peng_thesis/long_range --config-name train row="$group" \
        "${size[@]}" task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    record "validation_accuracy[%]=train.log:valid_accuracy@best" "test_accuracy[%]=train.log:test_accuracy@best" \
        "parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
