#!/usr/bin/env bash
# The cells of `make demo` (seqstruct/plots/demo.py): a plain Transformer and two with stack attention learn Dyck-2,
# with shorter strings, fewer epochs and a rate that falls to 0.
[[ -n "${SEQSTRUCT_RECIPE:-}" ]] || { echo "demo.sh: \`make demo\` runs these cells, and draws" >&2; exit 2; }
paper=stack_attention table=demo family="stack attention language models" licence="none needed, the strings are sampled"
rows=("dyck Tf" "dyck Tf+Nd" "dyck Tf+Sup") # the longest of the stacks does not start last

cell() {
    dataset="dyck, 5000 strings of length 5 to 20" minutes=2 disk=5 counts=(5000 500 100) lengths=(5:20 5:20)
    prepare_strings "demo-seed$seed" dyck
    fairseq-hydra-train --config-dir configs/stack_attention/cfl --config-name train row="$(slug "${row#* }")" \
        scale=demo schedule=demo task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    validate_strings test
    record "test_cross_entropy_difference[nats per symbol]=validate.log:test_difference/string length"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
