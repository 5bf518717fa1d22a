#!/usr/bin/env bash
# Table 5 of Structured Attention Networks (section 4.4, appendix A.5), and its stand-in: natural language inference by
# decomposable attention with five kinds of attention inside each sentence.
# Scale paper is SNLI with GloVe in the published setting; hard parents need parses of an external parser among the raw
# data, in heads/, as `seqstruct parse-dependencies` writes them.  Which trees the parser is pretrained on the source
# does not say: here they are UD English ParTUT's projective ones, at scale small too; s has size 50 (open as well).
# Scale small is RTE 1 to 3 instead, 1,591 pairs, with word vectors that are drawn and trained, smaller layers and Adam;
# its hard parents come from a joint_parser that is trained on the trees of UD English ParTUT and of UD English EWT's
# development file, with the tags of a tagger learned from the Brown corpus.  Scale smoke takes made-up pairs.  A cell
# with trees leaves tree.txt: the learned tree of a test sentence.
paper=structured_attention table=5 family="natural language inference"
licence="SNLI: CC BY-SA 4.0; GloVe: public domain; RTE, Brown: for research; UD ParTUT: CC BY-NC-SA; UD EWT: CC BY-SA"
rows=("No attention" "No attention + hard parent" {Simple,Structured}" attention" "Pretrained structured attention")
smoke_rows=("Pretrained structured attention") baselines=(majority)

# the trees of a corpus's split, among the raw data
trees() {
    if [[ "$scale" == smoke ]]; then echo "$runs/data/rte-made-up/treebank.conllu"; return; fi
    raw "ud-$1"
    echo "${from[1]:-ud-$1}/en_$1-ud-$2.conllu"
}

cell() {
    tagger=() heads=() disk=50 partut="$(trees partut train)" table=5-rte
    case "$scale" in
        smoke) minutes=0.3 dataset="120 made-up pairs, in place of SNLI, hidden size 20, 3 epochs" sizes=(10 20 20) ;;
        small)
            minutes=1 sizes=(50 100 100) dataset="RTE 1 to 3 in place of SNLI: 1591 pairs to train, 176 to validate, "
            dataset+="2400 to test; no word vectors"
            case "$row" in
                Pretrained*) dataset+=", parser pretrained on UD English ParTUT" ;;
                *parent) dataset+=", heads by a joint_parser trained on UD English ParTUT and EWT's dev file" ;;
            esac
            dataset+=", hidden size 100, 6 epochs"
            ;;
        paper) minutes=1500 disk=6000 download=2200 sizes=(100 300 300) table=5
            dataset="SNLI 1.0 with GloVe 840B, hidden size 300, 100 epochs" ;;
    esac
    case "$row" in *tructured*) minutes="$(times "$minutes" 2)" ;; esac
    raw nltk
    [[ "$scale" != smoke ]] || from+=(--downloads "$runs/data/rte-made-up")
    [[ "$scale" != small ]] || tagger=(--tagger "${from[1]:-nltk}/brown.zip")
    pairs=(data-prep/snli.sh --corpus rte "${from[@]}" --no-vectors)
    if [[ "$scale" == paper ]]; then
        raw snli
        pairs=(data-prep/snli.sh "${from[@]}")
        [[ "$row" != *parent ]] || heads=(--heads "${from[1]:-snli}/heads")
    elif [[ "$row" == *parent ]]; then
        prepare "rte-words-$scale" "${pairs[@]}"
        prepare "rte-texts-$scale" python -m seqstruct.data.nli.texts "$data"
        texts=("$data"/{train,valid,test}.{premise,hypothesis}.txt) more=()
        [[ "$scale" == smoke ]] || more=("train=$(trees ewt dev)")
        prepare "trees-$scale" seqstruct prepare parsing --trees "train=$partut" "${more[@]}" \
            "valid=$(trees partut dev)" "${tagger[@]}" --max-length 60
        shared "parser-$scale" fairseq-hydra-train --config-dir configs/structured_attention/inference \
            --config-name parser parser="$scale" task.data="$data"
        log=parser.log fairseq-validate "$data" --user-dir seqstruct --task joint_parsing --criterion joint_parsing \
            --path "$shared/checkpoint_best.pt" --batch-size 16 --log-format json "${cpu[@]}"
        prepare "rte-heads-$scale" seqstruct parse-dependencies "${texts[@]}" "${tagger[@]}" \
            --checkpoint "$shared/checkpoint_best.pt"
        heads=(--heads "$data")
    fi
    [[ "$scale" == paper ]] || pairs+=(--lowercase)
    prepare "pairs-$scale" "${pairs[@]}" "${heads[@]}"
    [[ "$row" != majority ]] || { baseline majority; return; }
    group="$(slug "${row/Pretrained s/S}")" parser=()
    [[ "$row" == No* || "$scale" == paper ]] || group+="_$scale"
    if [[ "$row" == Pretrained* ]]; then
        python -m seqstruct.data.nli.parser_pretraining "$data" --treebank "$partut" --out "$out/parser.pt" \
            --seed "$seed" --intra-attention "dependency(hidden_size=${sizes[0]})" --hidden-size "${sizes[1]}" \
            --word-dim "${sizes[2]}"
        parser=(model.pretrained_parser="$out/parser.pt")
    fi
    fairseq-hydra-train --config-dir configs/structured_attention/inference --config-name train row="$group" \
        scale="$scale" "${parser[@]}" task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    best="$out/checkpoints/checkpoint_best.pt"
    fairseq-validate "$data" --user-dir seqstruct --task nli --criterion classification_cross_entropy --path "$best" \
        --valid-subset valid,test --batch-size 50 --required-batch-size-multiple 1 --log-format json "${cpu[@]}"
    [[ "$row" != *tructured* ]] || python -m seqstruct.scoring.learned_tree "$data" "$best" --out "$out/tree.txt"
    more=()
    [[ "$row" != *parent || "$scale" == paper ]] || more=("parser_validation_uas[%]=parser.log:valid_uas")
    record "test_accuracy[%]=validate.log:test_accuracy" "validation_accuracy[%]=validate.log:valid_accuracy" \
        "${more[@]}"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
