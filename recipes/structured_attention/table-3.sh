#!/usr/bin/env bash
# Table 3 of Structured Attention Networks (section 4.2, appendix A.3), and its stand-in: translation with segmentation
# attention.
# Scale paper is the published setting, Japanese to English, from the licensed corpus (--from; data-prep/aspec.sh says
# how to get it).  Scale small takes Multi30k, German to English, 2 + 2 layers of size 128 and Adam; scale smoke a few
# hundred made-up sentence pairs, which prove nothing.
# Rows are named after the source's units and the attention; all score by the same bilinear map.  "no gamma", "unary l2"
# and "from sigmoid" are footnote 6's: marginals as they are; they and a penalty on the bilinear map; they, from a
# trained sigmoid model.  A cell leaves attention.png, as Figure 4: the weights of a test sentence and its reference.
# The published BLEU is Moses' multi-bleu.perl's, of tokens: at scale paper it stands beside SacreBLEU.
paper=structured_attention table=3 family="recurrent translation"
licence="paper: ASPEC, by application at https://jipsti.jst.go.jp/aspec/; small: Multi30k, for research; "
licence+="smoke: none needed"
rows=({characters,words}", "{simple,sigmoid,structured} "words, "{"no gamma","unary l2","from sigmoid"})
smoke_rows=("words, structured") baselines=(copy "characters, copy")

cell() {
    units="${row%, *}" attention="${row#*, }" source=de size="$scale" times_seen=1
    longest=50 most=50 limited="" metrics=()
    [[ "$row" != copy ]] || units=words
    case "$scale" in
        smoke) minutes=0.4 disk=2 epochs=6 text="400 made-up sentence pairs"; [[ "$units" == words ]] || longest=100 ;;
        small)
            minutes=12 disk=60 download=1.3 epochs=10 text="Multi30k de-en task 1, test_2016_flickr" times_seen=5
            longest=250 most=250
            [[ "$units" == words ]] || longest=60 epochs=26 size=small_characters
            ;;
        paper) minutes=1500 disk=900 epochs=30 text="ASPEC ja-en, 500000 pairs" times_seen=10 source=ja
            limited=characters metrics=(--metrics tokenized_bleu bleu chrf) ;;
    esac
    case "$attention $units" in
        simple* | sigmoid*) ;;
        from*) minutes="$(times "$minutes" 2.8)" ;;
        *) minutes="$(times "$minutes" 1.4)" ;;
    esac
    dataset="$text, $units to words, at most $longest ${limited:-$units} a source, "
    dataset+="tokens seen $times_seen times or more, $epochs epochs"
    if [[ "$scale" == paper ]]; then
        raw aspec
        prepare "ja-en-$units" data-prep/aspec.sh "${from[@]}" --units "${units/words/kytea}"
    else
        table=3-stand-in
        raw multi30k
        prepare "de-en-$units-$scale" data-prep/multi30k_words.sh "${from[@]}" --source-units "${units/words/moses}" \
            --max-source "$longest" --max-target "$most" --threshold "$times_seen"
    fi
    [[ "$attention" != copy ]] || { baseline copy --languages "$source" en "${metrics[@]}"; return; }
    training=(--config-dir configs/structured_attention/translation --config-name train scale="$size"
        task.data="$data/bin" common.seed="$seed") group="$(slug "$attention")" start=()
    if [[ "$attention" == "from sigmoid" ]]; then
        shared "$units-sigmoid-seed$seed" fairseq-hydra-train "${training[@]}" row=sigmoid
        start=(checkpoint.finetune_from_model="$shared/checkpoint_best.pt") group=no_gamma
    fi
    fairseq-hydra-train "${training[@]}" row="$group" "${start[@]}" checkpoint.save_dir="$out/checkpoints"
    best="$out/checkpoints/checkpoint_best.pt"
    fairseq-generate "$data/bin" --user-dir seqstruct --path "$best" --source-lang "$source" --target-lang en \
        --gen-subset test --beam 5 --lenpen 1 --max-len-a 1.5 --max-len-b 10 --max-tokens 4000 --results-path "$out" \
        "${cpu[@]}"
    seqstruct score --from-generate "$out/generate-test.txt" --references "$data/raw/test.en" --detokenize en \
        "${metrics[@]}" --record "$out/scores.json"
    python -m seqstruct.harness.plot_example "$best" --data "$data" --languages "$source" en --out "$out/attention.png"
    record "validation_perplexity[perplexity]=train.log:valid_ppl@best" scores.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
