#!/usr/bin/env bash
# Table 6 of Stack Attention and its stand-in, what training costs: examples a second, minutes an epoch, memory, for
# each model and task.
# A few hundred updates of each model at its published size, with no validation and nothing saved; the first 25 do not
# count.  An epoch has the published number of examples.  Rows of table 6 are on the Penn Treebank, named by --from;
# ours at scale small are on nltk's sample of it, with the vocabulary filled up to the published 23,835 entries.  Rows
# of translation are on Multi30k, filled up to the 6,156 entries that table 3's parameters give; two languages have two
# states and three, and the others cost what these do.  Scales smoke and small measure a CPU, and the greatest resident
# memory of the process; scale paper measures a GPU, and its memory to 0.1 GB.
paper=stack_attention table=6 family="cost of stack attention"
licence="nltk's sample of the Penn Treebank: non-commercial; Multi30k: for research; strings are sampled"
rows=(Tf Tf+Sup Tf+Nd {marked-reversal,hardest-cfl}" "{Tf,Tf+Sup,Tf+Nd,LSTM,LSTM+Sup,LSTM+Nd}
    "translation "{Tf,Tf+Sup,Tf+Nd})
smoke_rows=("marked-reversal Tf+Nd")

cell() {
    task="${row% *}" model="${row##* }" disk=3 place="1 threads" corpus="nltk's sample of the Penn Treebank"
    group="$(slug "$model")"
    case "$scale" in
        smoke) updates=50 ;;
        small) updates=200 ;;
        paper) updates=200 place="a GPU" corpus="Penn Treebank" ;;
    esac
    [[ "$task $scale" == "$model paper" ]] || table=6-stand-in
    device=(); [[ "$scale" == paper ]] || device=(--cpu)
    case "$task" in
        *-*)
            dataset="$task, strings of length 40 to 80, batches of 10" each=0.0015 folder=cfl epoch=10000
            [[ "$row" != hardest-cfl*Nd ]] || group+="3"
            prepare "cost-$task-$scale" seqstruct prepare cfl "$task" --train "$((10 * updates))" --valid 10 \
                --test-per-length 1 --lengths 40:80 --test-lengths 40:80 --seed 1
            ;;
        translation)
            dataset="Multi30k, size 160, at most 2048 tokens a side" each=0.03 folder=europarl epoch=100000
            download=1.3
            raw multi30k
            prepare multi30k-5000 data-prep/multi30k.sh "${from[@]}" --vocabulary 5000
            prepare cost-translation python -m seqstruct.data.fill_dictionary "$data/bin" --entries 6156
            ;;
        *)
            dataset="$corpus, at most 320 tokens a batch" each=0.006 folder=ptb epoch=39832
            name=treebank-sample; [[ "$scale" != paper ]] || name=ptb
            raw "${name/treebank-sample/nltk}"
            prepare "sentences-$name" data-prep/ptb_sentences.sh --corpus "$name" "${from[@]}"
            [[ "$scale" == paper ]] ||
                prepare cost-ptb python -m seqstruct.data.fill_dictionary "$data/bin/0" --entries 23835
            ;;
    esac
    dataset+=", $updates updates, $place" minutes="$(times "$updates" "$each")"
    path="$data"; [[ "$task $scale" != "$model paper" ]] || path="$data/bin/0"
    python -m seqstruct.benchmarks.training --updates "$updates" --epoch "$epoch" --out "$out/cost.json" \
        "${device[@]}" -- --config-dir "configs/stack_attention/$folder" --config-name train row="$group" \
        scale=paper task.data="$path" common.seed="$seed"
    record cost.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
