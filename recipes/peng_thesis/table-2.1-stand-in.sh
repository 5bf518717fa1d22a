#!/usr/bin/env bash
# Tables 2.1-stand-in and 2.3-stand-in, after Peng (2022): the heads of an intermediate dependency tree as features of a
# semantic dependency parser, how the one trains the other, and how that changes the trees of the pipeline of the same
# seed (the kinds of change of section 2.5, on validation graphs), beside what another seed of the pipeline changes.
# The corpora are free stand-ins, never to be compared with the published figures, which table-2.1.sh is for: UD English
# ParTUT for trees, and for graphs the enhanced dependencies of UD English EWT, whose development file is split for
# training.  Scale paper takes the published model, training and eta (1), with these corpora.  At the others each row
# first tries the same learning rates, and where it has an eta the same etas with each; the labeled F1 of the validation
# graphs after a few epochs decides, and all seeds are trained with what it chose.
paper=peng_thesis table=2.1-stand-in family="structured argmax" seeds_small=3
licence="UD English ParTUT (CC BY-NC-SA), UD English EWT (CC BY-SA); made-up sentences at smoke: none needed"
rows=("no syntax" PIPELINE SA STE SPIGOT "PIPELINE, another seed") smoke_rows=(SPIGOT "PIPELINE, another seed")
baselines=("previous word" "next word")

# options of a row's training: its config, and at scales small and smoke what the search over its settings chose
training() {
    settings=(--config-dir configs/peng_thesis/joint_parsing --config-name train row="$1" scale="$scale"
              task.data="$data")
    [[ "$scale" != paper ]] || return 0
    shared "search-$1-$scale" seqstruct search "${settings[@]}" --settings configs/peng_thesis/joint_parsing/search.yaml
    settings+=("\$(cat $shared/chosen)")
}

# [SEED]: how the trees of the pipeline of this seed become those of $best, or of the pipeline of SEED
changes() {
    training pipeline
    if (($#)); then
        shared "pipeline-$scale-seed$1" fairseq-hydra-train "${settings[@]}" common.seed="$1"
        best="$shared/checkpoint_best.pt"
    fi
    shared "pipeline-$scale-seed$seed" fairseq-hydra-train "${settings[@]}" common.seed="$seed"
    python -m seqstruct.harness.changed_trees "$data" --before "$shared/checkpoint_best.pt" --after "$best" \
        --out "$out/changes.json"
}

cell() {
    table=2.1-stand-in epochs=12 minutes=8 disk=30 held_out=200
    [[ "$scale" != paper ]] || epochs=30 minutes=900
    dataset="trees of UD English ParTUT, enhanced dependencies (universal labels) of UD English EWT: of its dev file "
    dataset+="1,801 sentences to train, 200 to validate; the test file; $epochs epochs"
    [[ "$scale" != smoke ]] || held_out=10 minutes=0.4 dataset="made-up sentences of five or six words"
    raw .
    prepare "partut-ewt-$scale" data-prep/ud_english.sh "${from[@]}" --parts trees graphs --held-out "$held_out"
    case "$row" in *word) baseline "$row"; return ;; esac
    best="$out/checkpoints/checkpoint_best.pt" wanted=()
    if [[ "$row" == "PIPELINE, another seed" ]]; then
        table=2.3-stand-in
        changes $((seed + 3))
        record changes.json
        return
    fi
    training "$(slug "$row")"
    [[ "$scale" == paper ]] || wanted=("$shared/measurements.json")
    fairseq-hydra-train "${settings[@]}" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    fairseq-validate "$data" --user-dir seqstruct --task joint_parsing --criterion joint_parsing --path "$best" \
        --valid-subset valid,test --batch-size 32 --log-format json "${cpu[@]}"
    [[ "$row" == "no syntax" ]] || wanted+=("test_graph_sentences_uas[%]=validate.log:test_intermediate_uas"
                                            "test_trees_uas[%]=validate.log:test_uas")
    case "$row" in
        STE | SPIGOT)
            changes
            wanted+=(2.3-stand-in:changes.json) ;;
    esac
    record "validation_labeled_f1[%]=validate.log:valid_labeled_f1" "test_labeled_f1[%]=validate.log:test_labeled_f1" \
        "test_unlabeled_f1[%]=validate.log:test_unlabeled_f1" "${wanted[@]}"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
