#!/usr/bin/env bash
# Question formation and tense reinflection (McCoy, Frank and Linzen 2020) by language models, as of DuSell and Cotterell
# (2025): trained on sentences on which a hierarchical and a linear rule agree, tested on sentences that tell them apart.
# Rows that begin with "tense" are of tense reinflection, table tense-reinflection, whose data are another grammar's.
# Scale paper: the published numbers of pairs, and models of about 200,000 parameters, five layers or an LSTM, a stack in
# the third layer; ten draws of learning rate and batch size, of which the one that ends lowest on validation is trained
# with five seeds.  Scale small: a fifth of the training pairs, a tenth of the test pairs, Transformers of size 32, Tf+Sup
# of 48, LSTMs as published, one learning rate for all models of a kind and size, 12 epochs, or 24 of LSTMs, which learn
# later; validation no longer falls then.  Scale smoke: 200 pairs, which prove nothing.
# Deviations: sentences are of our own vocabulary, of the same number of words; the LSTM has one layer, no embedding and
# no dropout; the first word is judged as decoded greedily, as by McCoy et al.
paper=generalisation table=question-formation family="syntactic generalisation" seeds_small=5 seeds_paper=5
licence="none needed, the sentences are generated"
models=(Tf Tf+Sup Tf+Nd LSTM LSTM+Nd) trivial=("linear rule" majority copy)
rows=("${models[@]}" "${models[@]/#/tense }") baselines=("${trivial[@]}" "${trivial[@]/#/tense }")
smoke_rows=(Tf+Nd "tense LSTM") smoke_baselines=("linear rule" "tense majority")

cell() {
    model="${row#tense }" task=question-formation epochs=12
    [[ "$row" == "$model" ]] || task=tense-reinflection table=tense-reinflection
    case "$scale" in
        smoke) counts=(200 50 20 20) minutes=0.3 disk=2 ;;
        small) counts=(20000 1000 1000 1000) minutes=3.5 disk=15 ;;
        paper) counts=(100000 1000 10000 10000) minutes=600 disk=60 ;;
    esac
    case "$model" in
        Tf) slower=1 ;; Tf+Sup) slower=1.5 ;; Tf+Nd) slower=1.7 ;; LSTM) slower=1.4 ;; LSTM+Nd) slower=3 ;;
        *) slower=0.01 ;;
    esac
    minutes="$(times "$minutes" "$slower")"
    [[ "$scale" != small || "$model" != LSTM* ]] || epochs=24
    dataset="$task, ${counts[0]} training pairs, ${counts[2]} test pairs and ${counts[3]} that tell the rules apart"
    [[ "$scale" != small ]] || dataset+=", $epochs epochs (published: 100000 and 10000, up to 1000 epochs, best of 10 draws)"
    prepare "$task-$scale" seqstruct prepare "$task" --train "${counts[0]}" --valid "${counts[1]}" \
        --test "${counts[2]}" --gen "${counts[3]}"
    for name in "${trivial[@]}"; do [[ "$model" != "$name" ]] || { baseline "$name"; return; }; done
    training=(--config-dir configs/generalisation --config-name train row="$(slug "$model")" scale="$scale"
        task.data="$data/bin") chosen=()
    if [[ "$scale" == paper ]]; then
        shared "search-$(slug "$row")" seqstruct search "${training[@]}" --settings configs/generalisation/search.yaml
        chosen=("\$(cat $shared/chosen)")
    else
        training+=(size="$(slug "${model%+Nd}")")
        ((epochs == 12)) || training+=(optimization.max_epoch="$epochs" lr_scheduler.total_num_update=10400)
    fi
    fairseq-hydra-train "${training[@]}" "${chosen[@]}" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    device=(); [[ "$scale" == paper ]] || device=(--cpu)
    seqstruct score-transformations "$data" --checkpoint "$out/checkpoints/checkpoint_best.pt" "${device[@]}" \
        --record "$out/scores.json"
    record "validation_perplexity[perplexity]=train.log:valid_ppl@best" scores.json \
        "parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
