#!/usr/bin/env bash
# Table 2 of Structured Attention Networks (section 4.1), tree transduction: formulas in prefix notation rewritten in
# infix notation, by an encoder of symbol embeddings without attention, with simple and with structured self-attention.
# Average share of the target before the first failure, in percent, for each depth of the test set.
# Scale paper is the published setting, which a laptop trains in minutes.  The source leaves open how formulas branch
# and how long they get: here the number of expressions in parentheses is uniform from 2 to 4, and where a number would
# do an expression is a formula with probability 0.2.  Its size of s (appendix A.1) is 50 here.  Validation formulas
# have the depths of training.  Scale small has a fifth of the formulas and 8 epochs, scale smoke a few and 2 epochs.
# A cell leaves attention.png, Figure 3 and what the decoder attends to, for the formula of section 4.1.
paper=structured_attention table=2 family="structured attention" seeds_paper=3
licence="none needed, the formulas are sampled"
rows=("No attention" Simple Structured) smoke_rows=(Structured) baselines=(copy constant)

cell() {
    disk=5 published=" (published: 5000 and 200, 13 epochs)"
    case "$scale" in
        smoke) minutes=0.3 counts=(60 10 6) epochs=2 ;;
        small) minutes=1.2 counts=(1000 100 100) epochs=8 ;;
        paper) minutes=8 counts=(5000 200 200) epochs=13 published= ;;
    esac
    case "$row" in No*) minutes="$(times "$minutes" 0.3)" ;; Simple) minutes="$(times "$minutes" 0.6)" ;; esac
    dataset="${counts[0]} formulas of each depth 2 to 4 to train, ${counts[2]} of each depth 2 to 6 to test, at most "
    dataset+="$epochs epochs; mean lengths of prefix forms by depth 14, 22, 33, 45, 58 (open in the source)$published"
    prepare "formulas-$scale-seed$seed" seqstruct prepare tree-transduction --train "${counts[0]}" \
        --valid "${counts[1]}" --test "${counts[2]}" --seed "$seed"
    case "$row" in copy | constant) baseline "$row"; return ;; esac
    fairseq-hydra-train --config-dir configs/structured_attention/tree_transduction --config-name train \
        row="$(slug "$row")" scale="$scale" task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    best="$out/checkpoints/checkpoint_best.pt"
    for split in valid test; do
        log="decode-$split.log" fairseq-generate "$data" --user-dir seqstruct --task tree_transduction --path "$best" \
            --gen-subset "$split" --beam 5 --max-len-a 1.4 --max-len-b 5 --batch-size 50 --num-workers 0 --cpu \
            --results-path "$out"
    done
    python -m seqstruct.scoring.first_failure "$data" --results "$out" --out "$out/shares.json"
    seqstruct plot attention "$best" "\$ ( * ( + ( + 15 7 ) 1 8 ) ( + 19 0 11 ) )" --data "$data" \
        --target "( ( 15 + 7 ) + 1 + 8 ) * ( 19 + 0 + 11 )" --out "$out/attention.png"
    record shares.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
