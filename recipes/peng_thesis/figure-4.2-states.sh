#!/usr/bin/env bash
# Figures 4.2, 4.3 and 5.1 of Peng (2022): megabytes of all states of decoders after so many tokens.
# Models and lengths are those of figure-4.2.sh.  `state_memory` is what is used, that is read at a step; softmax's
# cache doubles when it is full, and `reserved_memory` counts its spare cells.  Nothing is timed: the numbers are the
# same on every machine.
paper=peng_thesis table=figure-4.2 family="efficient decoders alone" licence="none needed, inputs are random"
rows=(softmax RFA-Gaussian RFA-arccos T2R ABC-MLP phi-elu "no attention")
smoke_rows=(softmax RFA-Gaussian)

cell() {
    lengths=(32 64 128 256 512 1024 2048) minutes=0.5 disk=0.1
    [[ "$scale" != smoke ]] || lengths=(8 16) minutes=0.1
    named="${lengths[*]}"
    dataset="random tokens, batch 16, lengths [${named// /, }], float32"
    python -m seqstruct.benchmarks.efficient_rows states "$row" --lengths "${lengths[@]}" --out "$out/states.json"
    record states.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
