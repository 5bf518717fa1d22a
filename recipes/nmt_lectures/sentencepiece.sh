#!/usr/bin/env bash
# SentencePiece (Kudo and Richardson 2018, table 1): the Kyoto Free Translation Task, both directions.
# GNMT with 6 layers of size 512 and five ways to cut source and target.  "SentencePiece" sees raw text; the other rows
# take text cut into words, Japanese by KyTea (their SentencePiece side is learnt on it too).  Adam at a rate of 0.0002,
# dropout 0.2, batches of 128, 20 epochs; beam search with length normalisation and coverage penalty.  Deviations: no
# change to gradient descent after Adam, joint dictionaries where one model cuts both sides; the scores are on Moses
# tokens, where the paper segments Japanese output by KyTea, so that en-ja is not comparable.
# Scale smoke takes made-up pairs; there is no scale small.
paper=nmt_lectures table=sentencepiece family="published translation tables"
licence="WMT, IWSLT and KFTT corpora: see their scripts in data-prep/; smoke: none needed"
rows=({ja-en,en-ja}" "{"Word model (baseline)",SentencePiece,"SentencePiece w/ pre-tok.",Word/SentencePiece} )
rows=("${rows[@]:0:4}" "ja-en SentencePiece/Word" "${rows[@]:4}" "en-ja SentencePiece/Word")
smoke_rows=("ja-en SentencePiece") baselines=({ja-en,en-ja}" copy") smoke_baselines=(copy)

cell() {
    text=tokenised
    case "$row" in
        *"Word model"*) kinds=words,words sizes=80000,80000 ;;
        *Word/*) kinds=words,sentencepiece sizes=80000,8000 ;;
        */Word | *copy) kinds=sentencepiece,words sizes=8000,80000 ;;
        *pre-tok.) kinds=sentencepiece sizes=8000 ;;
        *) kinds=sentencepiece sizes=8000 text=raw ;;
    esac
    case "$scale" in
        smoke)
            minutes=0.5 disk=5 source=en target=de tiny=(tiny=recurrent)
            sizes="$(sed 's/sentencepiece/35/g; s/words/30/g' <<<"$kinds")" kinds="${kinds/words,words/words}"
            dataset="400 made-up sentence pairs, en-de, ${kinds/,/ to } of ${sizes/,/ and } types"
            raw multi30k
            prepare "en-de-${kinds/,/-}-${sizes/,/-}" data-prep/multi30k.sh "${from[@]}" --src en --trg de \
                --subwords "$kinds" --vocabulary "$sizes" ;;
        small) echo "its scales are smoke and paper; at scale small multi30k.sh has the model on Multi30k" >&2; exit 1 ;;
        paper)
            minutes=5760 disk=15000 source="${row:0:2}" target="${row:3:2}" tiny=()
            kinds="${kinds/words,words/words}"
            dataset="KFTT, $text text, $source-$target, ${kinds/,/ to } of ${sizes/,/ and } types"
            raw kftt
            prepare "$source-$target-$text-${kinds/,/-}" data-prep/kftt.sh --text "$text" "${from[@]}" --src "$source" \
                --subwords "$kinds" --vocabulary "$sizes" ;;
    esac
    if [[ "$row" == *copy ]]; then
        baseline copy --languages "$source" "$target" --metrics tokenized_bleu bleu chrf
        return
    fi
    fairseq-hydra-train --config-dir configs/nmt_lectures --config-name published row=gnmt_sentencepiece \
        training=sentencepiece "${tiny[@]}" task.data="$data/bin" common.seed="$seed" \
        checkpoint.save_dir="$out/checkpoints"
    translate test "$out" "$out/checkpoints/checkpoint_best.pt" --task translation_gnmt --length-alpha 0.2 \
        --coverage-beta 0.2 --beam 8
    score_translation
    record_translation score.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
