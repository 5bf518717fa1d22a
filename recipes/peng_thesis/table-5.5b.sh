#!/usr/bin/env bash
# Table 5.5b of Peng (2022): translation of documents in windows of four sentences: softmax, Linformer, ABC.
# Scale paper is IWSLT14 Spanish to English; the last five checkpoints, a thousand updates apart, are averaged (the
# thesis: of the last five epochs).  Beam 5, length penalty 0.6 (appendix B.1.2), with predicted context.
# The rows of table 5.5b-stand-in, at scales small and smoke, are no documents: captions of Multi30k (made-up sentences)
# that happen to follow one another, eight to a "document", which need no context.  They show that windows train, that
# decoding goes on from its own translations, and what memory sizes of a quarter cost.
paper=peng_thesis table=5.5b family="efficient attention translation" baselines=(copy)
licence="IWSLT14: CC BY-NC-ND; Multi30k: for research; made-up sentences at the smoke scale: none needed"
rows=(BASE "ABC-MLP 32-16") smoke_rows=("ABC-MLP 32-16") paper_rows=(BASE {Linformer,ABC-RD,ABC-MLP}" 128-64")

cell() {
    case "$scale" in
        smoke) minutes=0.5 disk=5 pairs=320 types=150 dataset="made-up sentences" ;;
        small) minutes=8 disk=60 download=1.3 pairs=8000 types=3000 dataset="Multi30k de-en" ;;
        paper) minutes=360 disk=6000 ;;
    esac
    if [[ "$scale" == paper ]]; then
        dataset="IWSLT14 es-en, documents, dev2010 and tst2010-2012, windows of 4 sentences" source=es
        raw iwslt14_documents
        prepare iwslt14-es-en data-prep/iwslt14_documents.sh "${from[@]}"
    else
        table=5.5b-stand-in source=de
        dataset+=", $pairs pairs, 8 at a time in place of documents, 3 epochs"
        raw multi30k
        prepare "documents-de-en-$pairs" data-prep/multi30k.sh "${from[@]}" --src de --trg en --vocabulary "$types" \
            --pairs "$pairs" --documents 8 --max-length 1000
    fi
    if [[ "$row" == copy ]]; then
        for subset in valid test; do
            seqstruct score --hypotheses "$data/raw/$subset.$source" --data "$data" --subset "$subset" --metrics bleu \
                --record "$out/$subset.json" "${subset/valid/validation}_{}"
        done
        record valid.json test.json
        return
    fi
    fairseq-hydra-train --config-dir configs/peng_thesis/documents --config-name train row="$(slug "$row")" \
        scale="$scale" task.data="$data/bin" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    path="$out/checkpoints/checkpoint_best.pt"
    if [[ "$scale" == paper ]]; then
        path="$out/averaged.pt"
        seqstruct average "$out/checkpoints" --last 5 --out "$path"
    fi
    for subset in valid test; do
        log="$subset.log" fairseq-generate "$data/bin" --user-dir seqstruct --path "$path" --gen-subset "$subset" \
            --task document_translation --beam 5 --lenpen 0.6 --max-len-a 1.5 --max-len-b 20 --max-tokens 4000 \
            --results-path "$out/$subset" "${cpu[@]}"
        seqstruct score --from-generate "$out/$subset/generate-$subset.txt" --data "$data" --subset "$subset" \
            --metrics bleu --record "$out/$subset.json" "${subset/valid/validation}_{}"
    done
    record valid.json test.json "validation_perplexity[perplexity]=train.log:valid_ppl@best" \
        "parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
