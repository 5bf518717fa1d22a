#!/usr/bin/env bash
# Attention-based translation (Luong et al. 2015, table 4): WMT'14 English to German, newstest2014.
# Four LSTM layers of size 1000, reversed source, input feeding, dropout 0.2; words, 50,000 types of each language;
# pairs of up to 50 words; gradient descent from a rate of 1 that is halved each epoch after the eighth of twelve,
# batches of 128, gradients clipped to 5.  Beam 10; hypotheses are compared by log-probability alone.  test_perplexity
# is of a word.  For "unknown words replaced" text is decoded once more, and each <unk> becomes the source word with the
# greatest weight (without the paper's dictionary).  Scale smoke takes made-up pairs; there is no scale small.
paper=nmt_lectures table=luong family="published translation tables"
licence="WMT, IWSLT and KFTT corpora: see their scripts in data-prep/; smoke: none needed"
rows=("global (location)" "global (dot)" "global (general)" "local-m (dot)" "local-m (general)" "local-p (dot)"
    "local-p (general)")
smoke_rows=("local-p (general)") baselines=(copy)

cell() {
    [[ "$scale" != small ]] || { echo "scales are smoke and paper; at scale small multi30k.sh has the same models" >&2; exit 1; }
    words=(--src en --subwords words --vocabulary)
    if [[ "$scale" == smoke ]]; then
        minutes=0.5 disk=5 dataset="400 made-up sentence pairs, en-de, words of 30 and 30 types" tiny=(tiny=recurrent)
        raw multi30k
        prepare en-de-words-30 data-prep/multi30k.sh "${from[@]}" --trg de "${words[@]}" 30,30
    else
        minutes=5760 disk=15000 dataset="what data-prep/wmt14.sh makes, en-de, words of 50000 and 50000 types" tiny=()
        raw wmt14
        prepare en-de-words-50000 data-prep/wmt14.sh "${from[@]}" "${words[@]}" 50000,50000 \
            --max-length 50 --max-ratio 50
    fi
    [[ "$row" != *copy ]] || { baseline copy --languages en de --metrics tokenized_bleu bleu chrf; return; }
    group="$(slug "${row#global }")"
    fairseq-hydra-train --config-dir configs/nmt_lectures --config-name published row="luong_$group" training=luong \
        "${tiny[@]}" task.data="$data/bin" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    path="$out/checkpoints/checkpoint_best.pt" search=(--beam 10 --lenpen 0 --max-len-a 1.5 --max-len-b 10)
    fairseq-generate "$data/bin" --user-dir seqstruct --path "$path" --gen-subset test "${search[@]}" \
        --max-tokens 4000 --results-path "$out" "${cpu[@]}"
    score_translation
    fairseq-validate "$data/bin" --user-dir seqstruct --task translation --path "$path" --valid-subset test \
        --batch-size 32 --log-format json "${cpu[@]}"
    # fairseq replaces unknown words from text alone
    fairseq-preprocess --destdir "$out/text" --source-lang en --target-lang de --dataset-impl raw \
        --testpref "$data/text/test" --srcdict "$data/bin/dict.en.txt" --tgtdict "$data/bin/dict.de.txt"
    log=replaced.log fairseq-generate "$out/text" --user-dir seqstruct --path "$path" --gen-subset test \
        "${search[@]}" --max-tokens 4000 --dataset-impl raw --replace-unk --results-path "$out/replaced" "${cpu[@]}"
    seqstruct score --from-generate "$out/replaced/generate-test.txt" --data "$data" --metrics tokenized_bleu \
        --record "$out/replaced.json" "test_{}_unknown_words_replaced"
    record_translation score.json \
        "test_perplexity[perplexity]=validate.log:test_ppl" replaced.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
