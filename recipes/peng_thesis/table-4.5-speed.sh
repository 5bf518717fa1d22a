#!/usr/bin/env bash
# Speed and memory of table 4.5 of Peng (2022): training steps on long texts, in times the Transformer's; no training.
# Models are those of table-4.5.sh, of its rows of IMDb at scale paper and of ListOps at the others, there with 64 slots
# rather than 16, for texts that are longer than its formulas.  Nothing is dropped anywhere: attention weights are dropped
# by softmax alone, outside of the fused kernel, and would be timed with it.
# Speed is training steps per second, memory the most that one step's new tensors take, on made-up texts of 1,000 to
# 4,000 tokens; each model takes turns with softmax.  It wants a machine that does nothing else.
paper=peng_thesis table=4.5 family="efficient attention classifiers" licence="none needed, texts are random"
models=(Transformer RFA-Gaussian Linear Performer Linformer "Local attention" "Big Bird" Sinkhorn Reformer Synthesizer)
rows=() paper_rows=()
for model in "${models[@]}" ABC-MLP; do rows+=("ListOps $model"); done
for model in "${models[@]}"; do paper_rows+=("IMDb $model"); done
smoke_rows=("ListOps ABC-MLP")

cell() {
    name="${row#* }" lengths=(1000 2000 3000 4000) batch=2 device=CPU place=cpu slots=64 block=16 size=() disk=0.1
    case "$scale" in
        smoke) lengths=(40 80) minutes=0.1 ;;
        small) minutes=1 ;;
        paper) batch=32 device=GPU place=cuda slots=256 block=64 size=(size=imdb) minutes=1 ;;
    esac
    [[ "$scale" == paper ]] || table=4.5-stand-in
    named="${lengths[*]}"
    dataset="random texts, batch $batch, lengths [${named// /, }], no dropout, $device"
    case "$row" in
        *Linear | *Synthesizer | *Transformer) group="$(slug "$name")" ;;
        "IMDb RFA-Gaussian") group=rfa_gaussian_128 ;;
        *RFA* | *ABC* | *Linformer | *Performer) group="$(slug "$name")_$slots" ;;
        *) group="$(slug "$name")_$block" ;;
    esac
    python -m seqstruct.benchmarks.long_texts --config-dir configs/peng_thesis/long_range --config-name train \
        row="$group" scale="$scale" "${size[@]}" --base transformer --lengths "${lengths[@]}" --batch "$batch" \
        --device "$place" --out "$out/speed.json"
    record speed.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
