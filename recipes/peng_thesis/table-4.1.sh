#!/usr/bin/env bash
# Tables 4.1 and 5.2 of Peng (2022): how softmax attention, RFA and ABC grow with the length, as fitted exponents.
# Table 4.1 counts time as if all steps that may run at once did; what stands beside it is time on one thread, and the
# number of operators, which run one after another.  It counts the space of all of decoding; ours is the greatest sum of
# tensors that live at once in it, softmax's cache with its spare cells, and while it doubles both: a factor that is the
# same at all powers of two, so that no exponent has it.  What is measured is this implementation: its softmax attention
# never holds all weights at once, so its memory grows with n.  Nothing is dropped.  M = N = n.
paper=peng_thesis table=4.1 family="efficient attention layers alone" licence="none needed, inputs are random"
rows=({training\ {encoder,cross,causal},decoding\ {cross,causal}}" "{softmax,RFA}
      "writing ABC" {reading,overall}" "{softmax,ABC})
smoke_rows=("training causal RFA" "reading ABC")

cell() {
    lengths=(128 256 512 1024 2048) repeats=3 disk=0.1 kernels=0  # one of them counts as one operator
    case "$scale" in
        smoke) lengths=(16 32 64) repeats=1 minutes=0.2 ;;
        small) minutes=0.7 ;;
        paper) lengths+=(4096) minutes=3 ;;
    esac
    case "$row" in
        training*) memory=memory ;;
        decoding*) memory=forward_memory ;;
        *) memory=forward_memory table=5.2 ;;
    esac
    named="${lengths[*]}"
    dataset="random inputs, batch 4, size 64, fitted to the last 3 lengths of [${named// /, }]"
    python -m seqstruct.benchmarks.growth "$row" --lengths "${lengths[@]}" --repeats "$repeats" \
        --exponents time memory="$memory" operators --out "$out/growth.json"
    record growth.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
