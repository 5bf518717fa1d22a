#!/usr/bin/env bash
# Tables 3.4 and 3.3 of Peng (2022), what needs no training: branching and unlabeled F1 on the test set of fixed ways to
# branch, of gold trees, and in row "Random" of a PaLM with parameters as they are drawn, one for each of 25 seeds.
# Data as in table-3.1.sh.
paper=peng_thesis table=3.4 family="branching baselines" seeds_small=25 seeds_paper=25
licence="Penn Treebank: LDC99T42; nltk's sample: non-commercial; smoke: none needed, the sentences are made up"
rows=(Random) baselines=({Right,Left,Random}" branching" Gold) smoke_baselines=("Right branching")

cell() {
    more=-stand-in disk=30 model="2 layers of size 200" corpus=(--corpus treebank-sample --vocabulary 10000)
    case "$scale" in
        smoke) dataset="20 made-up sentences" minutes=0.3 corpus=(--corpus treebank-sample --vocabulary 200)
               model="2 layers of size 30" ;;
        small) dataset="the 244 test sentences of nltk's sample of the PTB" minutes=0.8 ;;
        paper) dataset="PTB, sections 23-24" minutes=10 more='' corpus=(--corpus ptb --vocabulary 10000)
               model="3 layers of size 1020" ;;
    esac
    table="3.4$more"
    [[ "$scale" != paper ]] || corpora=ptb
    raw "${corpora:-nltk}"
    prepare "trees-$scale" data-prep/ptb_trees.sh "${from[@]}" "${corpus[@]}" --leave-out-longer
    way="$(slug "${row% branching}")"
    score=(seqstruct parse "$data/trees/test.mrg" --branching "$way" --seed "$seed")
    if [[ "$row" == Random ]]; then
        dataset+=", model of $model, untrained"
        score=(seqstruct parse "$data/trees/test.mrg" --config-dir configs/peng_thesis/palm --config-name train
               --seed "$seed" --lowercase --untrained row=palm_u scale="$scale" spans="$scale" task.data="$data/bin"
               checkpoint.save_dir=none)
    fi
    "${score[@]}" --out "$out/40.json"
    wanted=("left_splits[%]=40.json:left_splits" "right_splits[%]=40.json:right_splits")
    [[ "$row" == Gold ]] || wanted+=("3.3$more:unlabeled_f1[%]=40.json:f1")
    case "$row" in
        *branching)
            "${score[@]}" --convention sentence --out "$out/sentence.json"
            "${score[@]}" --max-words 10 --out "$out/10.json"
            wanted+=("3.3$more:sentence_f1[%]=sentence.json:f1" "3.3$more:wsj_10_unlabeled_f1[%]=10.json:f1") ;;
    esac
    record "${wanted[@]}"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
