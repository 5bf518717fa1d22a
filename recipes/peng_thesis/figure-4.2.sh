#!/usr/bin/env bash
# Figures 4.2, 4.3 and 5.1 of Peng (2022): decoding speed by length, as `seqstruct bench decode` measures it.
# 6 layers of size 512, batch 16, untrained; conditional with a source as long as the target (figures 4.2 and 5.1) or
# without one (4.3); the thesis has a TPU, here it is the processor, at scale paper the GPU.  All models take turns in
# one measurement, which the cells of one seed share; another seed is another measurement.  In beam search the rows of
# all states are reordered before a step, which copies them whole, softmax's spare cells too.  "no attention", the
# limit, reads and writes by the identity.  It wants a machine that does nothing else; the memory of the figures is
# figure-4.2-states.sh's.  `seqstruct plot efficient` draws the records.
paper=peng_thesis table=figure-4.2 family="efficient decoders alone" licence="none needed, inputs are random"
rows=(softmax RFA-Gaussian RFA-arccos T2R ABC-MLP phi-elu "no attention")
smoke_rows=(softmax RFA-Gaussian) seeds_small=2 seeds_paper=2

cell() {
    lengths=(32 64 128 256 512 1024 2048) disk=0.1 device=CPU
    case "$scale" in
        smoke) lengths=(8 16) repeats=1 minutes=0.3 ;;
        small) repeats=5 threads=2 minutes=4 ;; # the first cell of a seed measures for all
        paper) repeats=7 device=GPU minutes=2 ;;
    esac
    case "$row" in
        RFA-arccos) also=figure-4.3 ;;
        T2R | ABC-MLP) also=figure-5.1 ;;
        *) also="figure-4.3 figure-5.1" ;;
    esac
    named="${lengths[*]}"
    dataset="random tokens, batch 16, lengths [${named// /, }], $device"
    prepare "decoding-$scale-seed$seed" python -m seqstruct.benchmarks.write_curves conditional unconditional --full \
        --lengths "${lengths[@]}" --repeats "$repeats" --device "$([[ $device == CPU ]] && echo cpu || echo cuda)"
    python -m seqstruct.benchmarks.efficient_rows speed "$row" --curves "$data" --out "$out/speed.json"
    record speed.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
