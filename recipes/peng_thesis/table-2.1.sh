#!/usr/bin/env bash
# Tables 2.1 and 2.3 of Peng (2022): syntactic-then-semantic parsing on DM and PSD of SDP 2015, in domain and on Brown,
# and how SPIGOT and STE change the trees of the pipeline of the same seed (on validation graphs).  FREDA3 learns three
# formalisms at once, here without its scores of arcs across them.  The corpora need licences (LDC2016T10 for the
# graphs, LDC99T42 for the trees): --from names the folder that data-prep/sdp2015.sh makes of them.  Tags and lemmas are
# those of the files, where the source predicts them with NLTK; the treebank has no lemmas and takes those that the
# graphs have most often for a word with its tag.  Validation graphs take the treebank's trees, for the attachment
# scores of 2.3.  Further deviations: batches of 16 sentences; word vectors are learned, where the released code begins
# with GloVe's, and there is no l2 penalty; all have the rates of the max-margin tree parser, where that of SA has 5e-4,
# halved every four epochs (appendix C.1.1); in row PIPELINE both parsers learn at the same time, where the source's
# first one is pretrained; training trees that are not projective are left out.  table-2.1-stand-in.sh has free
# stand-ins.
paper=peng_thesis table=2.1 family="structured argmax" licence="LDC2016T10 (SDP 2015) and LDC99T42 (Penn Treebank)"
rows=({DM,PSD}" "{NEURBOPARSER,FREDA3,PIPELINE,SA,STE,SPIGOT}) smoke_rows=("DM FREDA3")
baselines=({DM,PSD}" "{previous,next}" word")

cell() {
    formalism="$(slug "${row%% *}")" method="${row#* }" config=paper minutes=900 disk=30
    dataset="SDP 2015, sections 00 to 19; Stanford dependencies of the Penn Treebank, sections 20 and 21 left out"
    [[ "$scale" != smoke ]] || config=smoke minutes=0.4 dataset="made-up sentences of five or six words"
    names=("$formalism") dir="${given:-sdp2015}" corpora=()
    [[ "$method" != FREDA3 ]] || names=(dm psd pas)
    if [[ "$scale" == smoke ]]; then
        prepare sdp-made-up data-prep/sdp2015.sh --made-up
        dir="$data"
    fi
    for name in "${names[@]}"; do
        corpora+=(--graphs "$name" train="$dir/$name.train.sdp" valid="$dir/$name.dev.sdp" test="$dir/$name.id.sdp"
                  ood="$dir/$name.ood.sdp")
    done
    prepare "sdp-$formalism-${#names[@]}-$scale" seqstruct prepare parsing --tags xpos "${corpora[@]}" \
        --trees train="$dir/ptb.train.conllu" valid="$dir/ptb.dev.conllu"
    case "$method" in
        *word) baseline "$method" --splits test=in_domain ood=out_of_domain; return ;;
        NEURBOPARSER) group="neurboparser_$formalism" ;;
        *) group="$(slug "$method")" ;;
    esac
    training=(--config-dir configs/peng_thesis/joint_parsing --config-name train scale="$config" task.data="$data"
              common.seed="$seed")
    best="$out/checkpoints/checkpoint_best.pt" changes=()
    fairseq-hydra-train "${training[@]}" row="$group" checkpoint.save_dir="$out/checkpoints"
    fairseq-validate "$data" --user-dir seqstruct --task joint_parsing --criterion joint_parsing --path "$best" \
        --valid-subset "valid_$formalism,test_$formalism,ood_$formalism" --batch-size 32 --log-format json "${cpu[@]}"
    case "$method" in
        STE | SPIGOT)
            shared "pipeline-$formalism-$scale-seed$seed" fairseq-hydra-train "${training[@]}" row=pipeline
            python -m seqstruct.harness.changed_trees "$data" --before "$shared/checkpoint_best.pt" --after "$best" \
                --corpus "$formalism" --out "$out/changes.json"
            changes=(2.3:changes.json) ;;
    esac
    wanted=("validation_labeled_f1[%]=validate.log:valid_${formalism}_labeled_f1")
    for score in labeled_f1 unlabeled_f1; do
        wanted+=("in_domain_${score}[%]=validate.log:test_${formalism}_$score"
                 "out_of_domain_${score}[%]=validate.log:ood_${formalism}_$score")
    done
    record "${wanted[@]}" "${changes[@]}"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
