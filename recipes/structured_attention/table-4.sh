#!/usr/bin/env bash
# Table 4 of Structured Attention Networks (section 4.3): bAbI question answering by MemN2N, binary CRF and unary CRF.
# A cell trains all seeds of one task and model as one batch: 20 at scale paper, the published protocol, 6 at scale
# small.  Recorded for each seed are the accuracies on answers and on exact sequences of supporting facts; the paper
# gives the answers of the seed that is best on validation, and the mean of the facts over the best half of the seeds.
# Which are the best the paper does not say; here they are so on the validation answers, by loss where they tie.  What
# the text and the authors' released code do differently is chosen for each row on validation, with seeds of its own,
# from two settings of MemN2N, four of the unary CRF, eight of the binary one.  Training is that of appendix A.4, in
# batches; the code takes single questions.  The last epoch's parameters are evaluated.  Scale smoke takes made-up
# stories, which prove nothing.
paper=structured_attention table=4 family="memory networks"
licence="bAbI: CC BY 3.0; made-up stories at the smoke scale: none needed"
models=(MemN2N "Binary CRF" "Unary CRF") rows=() baselines=()
for task in 2 3 7 8 11 13 14 15 16 17 18 19 1 4 5 6 9 10 12 20; do
    for model in "${models[@]}"; do rows+=("task $task $model"); done
    case "$task" in
        1 | [4-6] | 9 | 10 | 12 | 20) ;;
        *) baselines+=("task $task "{random,"most frequent"}" answer") ;;
    esac
done
smoke_rows=("task 2 Binary CRF") smoke_baselines=("task 2 random answer" "task 2 most frequent answer")

cell() {
    read -r _ task model <<<"$row"
    threads=1 disk=2 download=12 facts=1 minutes=1 tried=2 count=(20 6)
    # K of Table 4; tasks with one supporting fact are not in the table
    case "$task" in 2 | 11 | 13 | 14 | 15 | 17 | 18 | 19) facts=2 ;; 3 | 7 | 8 | 16) facts=3 ;; esac
    case "$model" in Binary*) minutes=5 tried=8 ;; Unary*) minutes=2 tried=4 ;; esac
    case "$task" in 2 | 3 | [5-8]) minutes=$((3 * minutes)) ;; esac
    case "$scale" in
        smoke) count=(4 2) minutes=0.5 download=0 ;;
        small) count=(6 4) minutes=$(((minutes + 2) / 2)) ;;
    esac
    dataset="bAbI v1.2 en 1k, task $task, whole stories with 10% of the questions held out for validation, ${count[0]} "
    dataset+="seeds as one batch, 100 epochs, the best of $tried settings by ${count[1]} other seeds on validation"
    [[ "$scale" != smoke ]] || dataset="60 made-up stories, 4 seeds, 4 epochs"
    raw babi
    prepare "babi-$task-$scale" data-prep/babi.sh --task "$task" "${from[@]}"
    case "$task $model" in
        [78]\ *answer)  # their facts vary in number
            seqstruct baseline "$model" "$data" --steps "$facts" --out "$out/baseline.json"
            record "validation_accuracy[%]=baseline.json:validation_accuracy" \
                "test_accuracy[%]=baseline.json:test_accuracy"
            return ;;
        *answer) baseline "$model" --steps "$facts"; return ;;
    esac
    settings=(--config-dir configs/structured_attention/question_answering --config-name train row="$(slug "$model")"
              facts="k$facts" scale="$scale" task.data="$data")
    shared "search-$(slug "$row")-$scale" seqstruct search "${settings[@]}" \
        --settings configs/structured_attention/question_answering/search.yaml
    first=$(((seed - 1) * count[0] + 1))
    fairseq-hydra-train "${settings[@]}" "\$(cat $shared/chosen)" +task.first_seed="$first" common.seed="$seed" \
        checkpoint.save_dir="$out/checkpoints"
    fairseq-validate "$data" --user-dir seqstruct --task babi_qa --criterion babi_qa --seeds "${count[0]}" --cpu \
        --first-seed "$first" --report-seeds --path "$out/checkpoints/checkpoint_last.pt" --valid-subset valid,test \
        --batch-size 100 --required-batch-size-multiple 1 --log-format json --num-workers 0
    seeds=(python -m seqstruct.harness.seeds "$out/validate.log" --out "$out/seeds.json")
    case "$task" in [78]) "${seeds[@]}" --answers-alone ;; *) "${seeds[@]}" ;; esac
    record seeds.json "$shared/measurements.json"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
