#!/usr/bin/env bash
# Figure 2 of Stack Attention at the published lengths, 40 to 80, tested to 100: marked reversal and the hardest
# context-free language, a Transformer alone and with either stack.
# Scale small has the published data, models, batches and optimizer; the learning rate is the one that figure-2-pilot.sh
# chose, and there are 12 epochs (published: up to 200), five to ten minutes of one thread with compiled kernels.
paper=stack_attention table=figure-2-published-lengths family="stack attention language models"
licence="none needed, the strings are sampled" seeds_paper=10
rows=({marked-reversal,hardest-cfl}" "{Tf,Tf+Sup,Tf+Nd}) baselines=({marked-reversal,hardest-cfl}" 5-gram")
smoke_rows=("marked-reversal Tf+Nd") smoke_baselines=("marked-reversal 5-gram")

cell() {
    language="${row% *}" model="${row##* }" disk=10
    counts=(10000 1000 100) lengths=(40:80 40:100) limits=(scale="$scale")
    case "$scale" in
        smoke) minutes=0.4 counts=(200 50 2) lengths=(5:20 5:30) ;;
        small) minutes=11 limits+=(epochs=published_lengths) ;;
        paper) minutes=120 limits+=("optimization.lr=[$(log_uniform lr 0.0005 0.01)]") ;;
    esac
    [[ "$model" != Tf+Nd ]] || minutes="$(times "$minutes" 1.9)"
    dataset="$language, ${counts[0]} strings of length ${lengths[0]/:/ to }, test to ${lengths[1]#*:}"
    [[ "$scale" != small ]] || dataset+=", at most 12 epochs (published: 200, learning rate drawn for each run)"
    prepare_strings "$language-lengths-$scale-seed$seed" "$language"
    [[ "$model" != 5-gram ]] || { baseline 5-gram; return; }
    group="$(slug "$model")"
    [[ "$row" != "hardest-cfl Tf+Nd" ]] || group+=3
    fairseq-hydra-train --config-dir configs/stack_attention/cfl --config-name train row="$group" "${limits[@]}" \
        task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    validate_strings valid,test
    record "validation_cross_entropy_difference[nats per symbol]=validate.log:valid_difference/string length" \
        "test_cross_entropy_difference[nats per symbol]=validate.log:test_difference/string length"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
