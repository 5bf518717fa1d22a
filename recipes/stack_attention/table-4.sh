#!/usr/bin/env bash
# Tables 1 and 4 of Stack Attention: how softmax attention and the two stacks grow with the length n.
# Fitted exponents of n: of the time of a forward and backward pass and of its memory, with and without gradients
# (table 4, which states them), and of the number of operators that run one after another (for table 1, which states
# parallel time).  At lengths where the work inside an operator is small beside its start, time grows like the
# operators.  What is measured is this implementation: its softmax attention never holds all weights at once, so its
# memory grows with n.
paper=stack_attention table=4 family="attention layers alone" licence="none needed, inputs are random"
rows=(SDPA Sup Nd) smoke_rows=(SDPA)

cell() {
    lengths=(40 80 160 320 640) repeats=3 disk=0.1 kernels=0  # one of them counts as one operator at any length
    case "$scale" in
        smoke) lengths=(10 20 40) repeats=1 minutes=0.2 ;;
        small) minutes=1 ;;
        paper) lengths+=(1280) minutes=8 ;;
    esac
    [[ "$row" == Nd ]] || minutes="$(times "$minutes" 0.3)"
    named="${lengths[*]}"
    dataset="random inputs, batch 10, size 32, fitted to the last 3 lengths of [${named// /, }]"
    python -m seqstruct.benchmarks.growth "$row" --lengths "${lengths[@]}" --repeats "$repeats" \
        --exponents time memory forward_memory 1:operators --out "$out/growth.json"
    record growth.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
