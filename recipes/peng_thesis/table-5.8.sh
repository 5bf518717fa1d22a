#!/usr/bin/env bash
# Table 5.8 of Peng (2022): speed and memory of encoding texts with bounded memory, as by `seqstruct bench encode`.
# One layer of RoBERTa-base's size, forward alone, 512 tokens, batch 16; the thesis has a GPU, here it is the processor,
# at scale paper the GPU.  Memory is what a pass adds at most.  All layers take turns in one measurement, which the
# cells of one seed share; another seed is another measurement.
paper=peng_thesis table=5.8 family="efficient encoder layers alone" licence="none needed, inputs are random"
rows=(BASE {Linformer,ABC-MLP}" "{64,128})
smoke_rows=(BASE "ABC-MLP 64") seeds_small=2 seeds_paper=2

cell() {
    length=512 disk=0.1 device=CPU
    case "$scale" in
        smoke) length=16 repeats=1 minutes=0.1 ;;
        small) repeats=7 threads=2 minutes=0.5 ;;
        paper) repeats=20 device=GPU minutes=0.2 ;;
    esac
    dataset="random vectors, one layer, batch 16, $length tokens, $device"
    prepare "encoding-$scale-seed$seed" python -m seqstruct.benchmarks.write_curves encoding --lengths "$length" \
        --repeats "$repeats" --device "$([[ $device == CPU ]] && echo cpu || echo cuda)"
    python -m seqstruct.benchmarks.efficient_rows encoding "$row" --curves "$data" --out "$out/encoding.json"
    record encoding.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
