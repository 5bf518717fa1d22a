#!/usr/bin/env bash
# Table 5.6 of Peng (2022): RoBERTa with its attention swapped, masked language modeling continued, then GLUE.
# Scale paper: --from DIR holds roberta.base/model.pt as fairseq publishes it, text/, text of one's own binarised with
# its dictionary (the thesis: BookCorpus, Wikipedia, OpenWebText, RealNews), and mnli/, qnli/, qqp/ and sst-2/ as made
# by data-prep/glue.sh.  50,000 updates of 128 blocks of 512 tokens (the peak rate, 1e-4, is ours; the rest is
# RoBERTa's), then fine-tuning with the hyperparameters that Liu et al. (2019) give for each task.
# Scales small and smoke are table 5.6-stand-in: a RoBERTa of two layers, trained by fairseq's own `roberta` on the
# Brown corpus, is continued with each attention on the same text, then fine-tuned on SST's binary sentences; --from DIR
# holds brown.zip and stsa.binary.*.  Texts are short, so memories are of 16 and 32 slots.  One row more is not
# continued at all: the thesis says that all such models failed.
paper=peng_thesis table=5.6 family="efficient attention classifiers"
licence="Brown, SST, GLUE: non-commercial, for research; smoke: none needed, the sentences are made up"
rows=(BASE {Linformer,ABC-MLP}\ {16,32} "ABC-MLP 32, not continued")
smoke_rows=("ABC-MLP 16")
paper_rows=({MNLI,QNLI,QQP,SST-2}\ {BASE,{Linformer,ABC-MLP}\ {64,128}})
baselines=(majority) paper_baselines=({MNLI,QNLI,QQP,SST-2}" majority")

cell() {
    configs=(--config-dir configs/peng_thesis/masked_lm --config-name) seen=()
    model="${row%, not continued}" tuning="$scale" more="(no part of the published comparison)"
    [[ "$scale" == paper ]] || table=5.6-stand-in
    case "$scale" in
        smoke)
            dataset="made-up sentences; 1 layers of size 16, 20 updates, then 10 with this attention $more"
            prepare masked-lm data-prep/masked_lm.sh --made-up --lines 200 --vocabulary 60
            minutes=0.6 disk=3 text="$data/mlm" task="$data/task" ;;
        small)
            dataset="the first 12000 sentences of Brown; SST; 2 layers of size 128, 700 updates, then 250 with this "
            dataset+="attention $more"
            raw masked-lm
            prepare masked-lm data-prep/masked_lm.sh "${from[@]}" --lines 12000 --vocabulary 4000
            minutes=7 disk=80 text="$data/mlm" task="$data/task" ;;
        paper)
            dataset="text of one's own, 50,000 updates; GLUE, ${row%% *}" minutes=2880 disk=12000 given="${given:-FROM}"
            model="${row#* }" tuning="$(slug "${row%% *}")" text="$given/text" task="$given/${tuning/_/-}" ;;
    esac
    if [[ "$row" == *majority ]]; then
        seqstruct baseline majority "$task" --out "$out/baseline.json"
        record baseline.json
        return
    fi
    start="${given:-}/roberta.base/model.pt"
    if [[ "$scale" != paper ]]; then
        shared pretrained fairseq-hydra-train "${configs[@]}" pretrain scale="$scale" updates="pretrain_$scale" \
            task.data="$text" common.seed="$seed"
        start="$shared/checkpoint_last.pt"
    fi
    if [[ "$row" != *"not continued" ]]; then
        shared continued fairseq-hydra-train "${configs[@]}" continue row="$(slug "$model")" scale="$scale" \
            updates="continue_$scale" task.data="$text" common.seed="$seed" checkpoint.finetune_from_model="$start"
        start="$shared/checkpoint_last.pt" seen=("masked_perplexity[perplexity]=$shared/train.log:valid_ppl")
    fi
    fairseq-hydra-train "${configs[@]}" finetune row="$(slug "$model")" scale="$scale" tuning="$tuning" \
        task.data="$task" common.seed="$seed" checkpoint.finetune_from_model="$start" \
        checkpoint.save_dir="$out/checkpoints"
    record "validation_accuracy[%]=train.log:valid_accuracy@best" "${seen[@]}" \
        "parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
