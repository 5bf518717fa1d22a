#!/usr/bin/env bash
# Figure 2 of Stack Attention at the published lengths, 40 to 80, tested to 100: five context-free languages, Transformers
# and LSTMs, alone and with either stack.
# Scale small has the published data, models, batches, optimizer and patience, and each run draws its learning rate; there
# are three runs of at most 60 epochs (published: ten of at most 200), up to three quarters of an hour of one thread each,
# with compiled kernels and others beside them.
# Trivial baseline: a 5-gram of the same strings.  Of a language's three Transformers and three LSTMs the order on
# validation decides, each by its best draw: on the hardest language it speaks against section 6 if Tf or Tf+Sup is below
# Tf+Nd, elsewhere if Tf is below Tf+Sup; a difference that draws make too (Welch's test) is none.
paper=stack_attention table=figure-2-published-lengths family="stack attention language models"
licence="none needed, the strings are sampled" seeds_small=3 seeds_paper=10
rows=() baselines=()
for language in marked-reversal hardest-cfl dyck unmarked-reversal padded-reversal; do
    rows+=("$language "{Tf,Tf+Sup,Tf+Nd,LSTM,LSTM+Sup,LSTM+Nd}) baselines+=("$language 5-gram")
done
smoke_rows=("marked-reversal Tf+Nd") smoke_baselines=("marked-reversal 5-gram")

cell() {
    language="${row% *}" model="${row##* }" disk=10
    counts=(10000 1000 100) lengths=(40:80 40:100) limits=(scale="$scale")
    case "$scale" in
        smoke) minutes=0.4 counts=(200 50 2) lengths=(5:20 5:30) ;;
        small) minutes=30 limits+=(epochs=published_lengths) ;;
        paper) minutes=120 ;;
    esac
    case "$model" in *+Nd) slower=1.4 ;; LSTM) slower=0.4 ;; *) slower=1 ;; esac
    minutes="$(times "$minutes" "$slower")"
    [[ "$scale" == smoke ]] || limits+=("optimization.lr=[$(log_uniform lr 0.0005 0.01)]")
    dataset="$language, ${counts[0]} strings of length ${lengths[0]/:/ to }, test to ${lengths[1]#*:}"
    [[ "$scale" != small ]] || dataset+=", at most 60 epochs, learning rate drawn (published: 200, ten draws)"
    prepare_strings "$language-lengths-$scale-seed$seed" "$language"
    [[ "$model" != 5-gram ]] || { baseline 5-gram; return; }
    group="$(slug "$model")"
    case "$model $language" in *Nd\ padded-reversal | *Nd\ hardest-cfl) group+=3 ;; esac
    fairseq-hydra-train --config-dir configs/stack_attention/cfl --config-name train row="$group" "${limits[@]}" \
        task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    validate_strings valid,test
    record "validation_cross_entropy_difference[nats per symbol]=validate.log:valid_difference/string length" \
        "test_cross_entropy_difference[nats per symbol]=validate.log:test_difference/string length"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
