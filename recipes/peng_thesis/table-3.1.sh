#!/usr/bin/env bash
# Tables 3.1, 3.3 and 3.4 of Peng (2022), what is trained: perplexity of PaLM and others on the Penn Treebank, unlabeled
# F1 of the trees that they imply on the test set's sentences of at most 40 words, and how these branch; F1 also on at
# most 10 words (note 12), with the left span's score added (note 7), and by the convention of sentences.  What needs no
# training is in table-3.4.sh.  Row "PaLM-U last layer" attends after the last layer (note 9).
# Scale paper takes .mrg trees of the Linguistic Data Consortium (--from, the folder parsed/mrg/wsj) and makes Mikolov's
# kind of text of them.  PaLM is trained as appendix D.1 says; AWD-LSTM, ON-LSTM and PRPN, whose figures are quoted, as
# in their papers and code, but that AWD-LSTM is not fine-tuned by a second run of averaged SGD.
# Scales small and smoke are tables of stand-ins: nltk's sample of the treebank, two layers; made-up sentences.  A model
# behind the Kneser-Ney 5-gram is a defect or unfinished; a parser behind right branching has found no trees.  As
# published would be PaLM-U and PaLM-S ahead of AWD-LSTM, and PaLM-RB not, by more than seeds differ.
paper=peng_thesis table=3.1 family="parsing language models"
licence="Penn Treebank: LDC99T42; nltk's sample: non-commercial; smoke: none needed, the sentences are made up"
rows=(AWD-LSTM PRPN ON-LSTM PaLM-U PaLM-RB PaLM-S "PaLM-U last layer") smoke_rows=(PaLM-S)
baselines=(bigram trigram 5-gram)

cell() {
    config="$(slug "$row")" name=train more=-stand-in disk=30 minutes=0.4 corpus=(--corpus treebank-sample --vocabulary 10000)
    case "$scale" in
        smoke) corpus=(--corpus treebank-sample --vocabulary 200) dataset="160 made-up sentences with trees" ;;
        small) minutes=21 dataset="nltk's sample of the PTB (3396 sentences, 75,000 words to train)"
               [[ "$row" != PRPN && "$row" != ON-LSTM ]] || minutes=48
               trained=", 2 layers of size 200, word vectors of 100, spans of at most 10, 66 epochs, 60 of Adam, then "
               trained+="averaged SGD (published: 930,000 words, 3 layers of size 1020 to 1150, Adam for 40 epochs)"
               if [[ "$row" == *gram ]]; then minutes=0.3; else dataset+="$trained"; fi ;;
        paper) more='' disk=400 minutes=1500 corpus=(--corpus ptb --vocabulary 10000)
               dataset="PTB trees, sections 00-20, 21-22, 23-24, as Mikolov's text"
               case "$row" in
                   PaLM*) dataset+=", at most 500 epochs, 40 of Adam, then averaged SGD" ;;
                   PRPN) name=prpn dataset+=", at most 100 epochs of Adam" ;;
                   AWD-LSTM) config+=_paper dataset+=", at most 500 epochs of SGD, averaged once it stands still" ;;
                   ON-LSTM) config+=_paper dataset+=", at most 1,000 epochs of SGD, averaged once it stands still" ;;
               esac ;;
    esac
    table="3.1$more"
    [[ "$scale" != paper ]] || corpora=ptb
    raw "${corpora:-nltk}"
    prepare "trees-$scale" data-prep/ptb_trees.sh "${from[@]}" "${corpus[@]}" --leave-out-longer
    case "$row" in *gram) baseline "$row"; return ;; esac
    groups=(row="$config" scale="$scale")
    [[ "$name" == train ]] || groups=()
    [[ "$row" != PaLM* ]] || groups+=(spans="$scale")
    fairseq-hydra-train --config-dir configs/peng_thesis/palm --config-name "$name" "${groups[@]}" \
        task.data="$data/bin" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    fairseq-validate "$data/bin" --user-dir seqstruct --task span_language_modeling --batch-size 1 "${cpu[@]}" \
        --criterion regularized_cross_entropy --path "$out/checkpoints/checkpoint_best.pt" --valid-subset valid,test \
        --log-format json
    wanted=("validation_perplexity[perplexity]=validate.log:2^valid_nll_loss"
            "test_perplexity[perplexity]=validate.log:2^test_nll_loss" "parameters[parameters]=train.log:parameters")
    [[ "$row" != AWD-LSTM ]] || { record "${wanted[@]}"; return; }
    score=(seqstruct parse "$data/trees/test.mrg" --checkpoint "$out/checkpoints/checkpoint_best.pt" --data "$data/bin"
           --lowercase)
    "${score[@]}" --out "$out/40.json"
    "${score[@]}" --convention sentence --out "$out/sentence.json"
    "${score[@]}" --max-words 10 --out "$out/10.json"
    case "$row" in
        PaLM-RB) ;;
        PaLM*) "${score[@]}" --left-score --out "$out/left.json"
               wanted+=("3.3$more:left_score_unlabeled_f1[%]=left.json:f1") ;;
    esac
    record "${wanted[@]}" "3.3$more:unlabeled_f1[%]=40.json:f1" "3.4$more:left_splits[%]=40.json:left_splits" \
        "3.4$more:right_splits[%]=40.json:right_splits" "3.3$more:sentence_f1[%]=sentence.json:f1" \
        "3.3$more:wsj_10_unlabeled_f1[%]=10.json:f1"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
