#!/usr/bin/env bash
# Table 2.2 of Peng (2022), section 2.4.2: a classifier of sentences that sees the averaged heads and roles of each
# word, and how its loss trains the parser.  The parser learns its graphs first, and then both learn together, with a
# fifth of the graphs in each epoch.  DM needs a licence (LDC2016T10): at scale paper --from names a folder with
# dm.{train,dev}.sdp, stsa.binary.{train,dev,test} and nltk's brown.zip.  Scale small, table 2.2-stand-in, takes the
# enhanced dependencies of UD English EWT as graphs.  Deviations at every scale: the tags of all sentences are those of
# a tagger learned from the Brown corpus, where the source has NLTK's; there are no lemmas; word embeddings are learned,
# where the source has GloVe, and the parser's are as large as the classifier's; the parser learns in batches too; in
# row PIPELINE it goes on learning from its fifth of the graphs, where the source's is fixed.  At scale paper sizes and
# dropouts of the classifier are among those of table C.1, not searched for, weights decay apart from Adam's step, and
# training graphs have at most 60 words.  Eta is the source's (appendix C.1.2), not tuned; STE has it too, but at scale
# paper is the identity, as in section 2.2.2.
paper=peng_thesis table=2.2 family="structured argmax" seeds_small=2
licence="SST, Brown: for research; UD English EWT (CC BY-SA); at paper LDC2016T10; made-up sentences at smoke: none"
rows=("parser alone" BiLSTM PIPELINE STE SPIGOT) smoke_rows=(SPIGOT) baselines=(majority "previous word" "next word")

cell() {
    table=2.2-stand-in disk=30 epochs=(20 3) minutes=5 held_out=200
    name="enhanced dependencies of UD English EWT (1,801 sentences)"
    case "$scale" in
        smoke) minutes=0.4 held_out=10 ;;
        paper) table=2.2 minutes=400 epochs=(30 30) name=DM ;;
    esac
    dataset="SST binary sentences; graphs: $name; ${epochs[0]} epochs of the parser alone, ${epochs[1]} of both; "
    dataset+="learned word embeddings, tags of a tagger learned from the Brown corpus"
    [[ "$scale" != smoke ]] || dataset="made-up sentences of five or six words"
    raw .
    dir="${given:-.}"
    if [[ "$scale" == paper ]]; then
        prepare dm-and-sst seqstruct prepare parsing --max-length 60 --tagger "$dir/brown.zip" \
            --graphs graphs train="$dir/dm.train.sdp" valid="$dir/dm.dev.sdp" \
            --classes train="$dir/stsa.binary.train" valid="$dir/stsa.binary.dev" test="$dir/stsa.binary.test"
    else
        prepare "ewt-and-sst-$scale" data-prep/ud_english.sh "${from[@]}" --parts graphs classes --tagged \
            --held-out "$held_out"
    fi
    case "$row" in
        majority) baseline majority; return ;;
        *word) seqstruct baseline "$row" "$data" --out "$out/baseline.json"
               record "graphs_labeled_f1[%]=baseline.json:validation_labeled_f1"
               return ;;
    esac
    parser=(--config-dir configs/peng_thesis/graph_sentiment --config-name parser scale="parser_$scale"
            task.data="$data" common.seed="$seed")
    group="$(slug "$row")"
    [[ "$scale $row" != "paper STE" ]] || group=ste_paper
    joint=(--config-dir configs/peng_thesis/graph_sentiment --config-name train row="$group" scale="$scale"
           task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints")
    subsets=valid_classes,test_classes wanted=()
    case "$row" in
        "parser alone") fairseq-hydra-train "${parser[@]}" checkpoint.save_dir="$out/checkpoints"
                        subsets=valid_graphs ;;
        BiLSTM) fairseq-hydra-train "${joint[@]}" ;;
        *) shared "parser-$scale-seed$seed" fairseq-hydra-train "${parser[@]}"
           fairseq-hydra-train "${joint[@]}" +task.pretrained_parser="$shared/checkpoint_best.pt"
           subsets+=,valid_graphs ;;
    esac
    fairseq-validate "$data" --user-dir seqstruct --task joint_parsing --criterion joint_parsing --batch-size 32 \
        --path "$out/checkpoints/checkpoint_best.pt" --valid-subset "$subsets" --log-format json "${cpu[@]}"
    [[ "$row" == "parser alone" ]] || wanted=("validation_accuracy[%]=validate.log:valid_classes_accuracy"
                                              "test_accuracy[%]=validate.log:test_classes_accuracy")
    [[ "$row" == BiLSTM ]] || wanted+=("graphs_labeled_f1[%]=validate.log:valid_graphs_labeled_f1")
    record "${wanted[@]}"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
