#!/usr/bin/env bash
# Corpus statistics of ways to cut German words (Sennrich et al. 2016, table 1, as the lectures show it): tokens and types
# of the training text, unknown tokens of the test text, as `seqstruct statistics` counts them.
# Scale paper takes text that --from names, a folder with tokenised train.de, train.en and test.de (WMT15 and
# newstest2013 in the source), and a shortlist of 50,000.  Its BPE aims at the 63,000 types that the source's 59,500
# merges make, joint BPE, which has 89,500 merges there, at 30,000 more, of both languages.  Scale small (table
# bpe-statistics-stand-in) is Multi30k, 1/300 of that, with 6,000 types for BPE, 9,000 for joint BPE and a shortlist of
# 5,000; scale smoke takes made-up sentences.  Nothing is trained.
paper=nmt_lectures table=bpe-statistics family="corpus statistics"
licence="paper: WMT15, for research; small: Multi30k, for research; smoke: none needed"
rows=(none characters "character bigrams" "character bigrams (shortlist)" "character trigrams" "compound splitting"
    morfessor hyphenation BPE "BPE (joint)")
smoke_rows=("compound splitting" "BPE (joint)")

cell() {
    disk=10
    case "$scale" in
        smoke) minutes=0.1 sizes=(60 80 5) dataset="400 made-up sentence pairs" ;;
        small) minutes=1 sizes=(6000 9000 5000) dataset="Multi30k task 1, German (and English for joint BPE), 29000 \
sentences, test_2016_flickr" ;;
        paper) minutes=120 sizes=(63000 93000 50000) dataset="the folder of tokenised text that --from names" ;;
    esac
    text="${given:-FOLDER-OF-TEXT}"
    if [[ "$scale" != paper ]]; then
        table=bpe-statistics-stand-in
        raw multi30k
        prepare de-en-words data-prep/multi30k_words.sh "${from[@]}" --src de --trg en --max-source 1000 \
            --max-target 1000
        text="$data/text"
    fi
    seqstruct statistics --train "$text/train.de" --test "$text/test.de" --other "$text/train.en" --language de \
        --segmentations "$row" --vocabulary "${sizes[0]}" --joint-vocabulary "${sizes[1]}" --shortlist "${sizes[2]}" \
        --record "$out/statistics.json"
    record statistics.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
