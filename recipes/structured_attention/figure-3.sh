#!/usr/bin/env bash
# Figure 3 of Structured Attention Networks, in numbers: where the encoder's attention of Table 2 takes the closing
# parentheses of formulas.  The source shows one formula, and says of marginals that the weights of closing parentheses
# are "generally placed on the opening parentheses (though not necessarily on a single parenthesis)", more so than those
# of simple attention.  Measured over all closing parentheses of the test set: the weight on opening ones, and on the
# one that each closes.  It holds if marginals have, with each seed, most of that weight on opening ones, and more of it
# than simple attention.  What place alone gives: even weights, and the nearest opening parenthesis before.  Beside it,
# added once these were seen: the weight of all symbols on the two next to them.
# Trainings, data and scales are those of table-2.sh.
paper=structured_attention table=figure-3 family="structured attention" seeds_small=3 seeds_paper=3
licence="none needed, the formulas are sampled"
rows=(Simple Structured) smoke_rows=(Structured) baselines=("even weights" "nearest opening")

cell() {
    disk=5
    case "$scale" in
        smoke) minutes=0.3 counts=(60 10 6) ;;
        small) minutes=1.2 counts=(1000 100 100) ;;
        paper) minutes=8 counts=(5000 200 200) ;;
    esac
    [[ "$row" != Simple ]] || minutes="$(times "$minutes" 0.6)"
    dataset="${counts[0]} formulas of each depth 2 to 4 to train, ${counts[2]} of each depth 2 to 6 to test, as table 2"
    prepare "formulas-$scale-seed$seed" seqstruct prepare tree-transduction --train "${counts[0]}" \
        --valid "${counts[1]}" --test "${counts[2]}" --seed "$seed"
    case "$row" in "even weights" | "nearest opening") baseline "$row"; return ;; esac
    fairseq-hydra-train --config-dir configs/structured_attention/tree_transduction --config-name train \
        row="$(slug "$row")" scale="$scale" task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    python -m seqstruct.scoring.parentheses "$out/checkpoints/checkpoint_best.pt" --data "$data" \
        --out "$out/weights.json"
    record weights.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
