#!/usr/bin/env bash
# Table 3.2 of Peng (2022): perplexity of AWD-LSTM, PaLM-U and PaLM-S on WikiText-2.
# Scale paper downloads WikiText-2 raw, or takes --from, a folder with wiki.{train,valid,test}.raw.  The thesis takes
# PaLM-S's annotations from the treebank (note 10) and does not say how they supervise attention over WikiText-2: here
# it needs parses of the text, a folder with train.mrg, valid.mrg and test.mrg, which then all rows read, so that they
# predict the same tokens (an EOS after each sentence, where WikiText-2 has one after each paragraph).  AWD-LSTM is
# trained as for table 3.1, with 750 epochs, PaLM as there too.  Scales small and smoke, table 3.2-stand-in, take the
# data of table-3.1.sh in place of WikiText-2.
paper=peng_thesis table=3.2 family="parsing language models"
licence="WikiText-2: CC BY-SA; nltk's sample of the treebank: non-commercial; smoke: none needed"
rows=(AWD-LSTM PaLM-U PaLM-S) smoke_rows=(PaLM-S) baselines=(bigram trigram 5-gram)

cell() {
    table=3.2-stand-in config="$scale" disk=30 task=span_language_modeling trees=(--corpus treebank-sample)
    case "$scale" in
        smoke) minutes=0.4 trees+=(--vocabulary 200)
               dataset="in place of WikiText-2: 160 made-up sentences with trees" ;;
        small) minutes=21 trees+=(--vocabulary 10000)
               dataset="in place of WikiText-2: nltk's sample of the PTB (3396 sentences, 75,000 words to train)"
               trained=", 2 layers of size 200, word vectors of 100, spans of at most 10, 66 epochs, 60 of Adam, then "
               trained+="averaged SGD (published: 930,000 words, 3 layers of size 1020 to 1150, Adam for 40 epochs)"
               if [[ "$row" == *gram ]]; then minutes=0.3; else dataset+="$trained"; fi ;;
        paper) minutes=4000 disk=600 download=4.7 table=3.2 config=wikitext2
               dataset="WikiText-2 raw, types that training has three times" ;;
    esac
    if [[ "$scale" != paper ]]; then
        raw nltk
        prepare "trees-$scale" data-prep/ptb_trees.sh "${from[@]}" "${trees[@]}" --leave-out-longer
    elif [[ -n "${given:-}" && -f "${given:-}/train.mrg" ]]; then
        raw wikitext2
        config=wikitext2_parses
        prepare wikitext2-parses data-prep/ptb_trees.sh "${from[@]}" --corpus parses --leave-out-longer
    else
        raw wikitext2
        task=stream_language_modeling
        prepare wikitext2 data-prep/wikitext2.sh "${from[@]}"
    fi
    case "$row" in *gram) baseline "$row"; return ;; esac
    model="$(slug "$row")"
    [[ "$scale $row" != "paper AWD-LSTM" ]] || model+=_paper
    groups=(row="$model" scale="$config")
    [[ "$row" != PaLM* ]] || groups+=(spans="$config")
    fairseq-hydra-train --config-dir configs/peng_thesis/palm --config-name train "${groups[@]}" \
        task.data="$data/bin" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    fairseq-validate "$data/bin" --user-dir seqstruct --task "$task" --criterion regularized_cross_entropy \
        --path "$out/checkpoints/checkpoint_best.pt" --valid-subset valid,test --batch-size 1 --log-format json \
        "${cpu[@]}"
    record "validation_perplexity[perplexity]=validate.log:2^valid_nll_loss" \
        "test_perplexity[perplexity]=validate.log:2^test_nll_loss" "parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
