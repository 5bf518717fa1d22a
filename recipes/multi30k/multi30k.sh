#!/usr/bin/env bash
# Multi30k (Elliott et al. 2016), German to English: softmax, and a stack in the third layer of both sides.
# The comparison of Stack Attention, section 8, on a corpus that a laptop can train on.  Beam 4, sacreBLEU on the raw
# references of test_2016_flickr.  Scale paper takes the published models and training (5 + 5 layers, d = 160); scale
# small 3 + 3 layers, d = 128 and nine epochs; scale smoke a few hundred made-up sentence pairs, which prove nothing.
# The runs keep what they decoded as generate-test.txt, so that two of them can be compared by a paired bootstrap:
#     seqstruct score --from-generate RUN/generate-test.txt --against OTHER/generate-test.txt
#         --references DATA/raw/test.en --subwords bpe --detokenize en
paper=stack_attention table=multi30k family="stack attention translation" seeds_paper=5
licence="Multi30k: for research; made-up sentences at the smoke scale: none needed"
rows=(Tf Tf+Sup Tf+Nd) smoke_rows=(Tf+Sup) baselines=(copy)

cell() {
    case "$scale" in
        smoke) minutes=0.4 disk=2 types=150 epochs=8 ;;
        small) minutes=17 disk=50 download=1.3 types=5000 epochs=9 ;;
        paper) minutes=60 disk=180 download=1.3 types=10000 epochs=100 ;;
    esac
    dataset="Multi30k de-en task 1, 29000 pairs, test_2016_flickr, joint BPE of $types types, at most $epochs epochs"
    [[ "$scale" != smoke ]] || dataset="400 made-up sentence pairs, ${dataset#*flickr, }"
    raw multi30k
    prepare "de-en-bpe-$types" data-prep/multi30k.sh "${from[@]}" --src de --trg en --vocabulary "$types"
    [[ "$row" != copy ]] || { baseline copy --languages de en; return; }
    group="$(slug "$row")"
    [[ "$scale $row" != "paper Tf+"* ]] || group+="5"
    fairseq-hydra-train --config-dir configs/multi30k --config-name train row="$group" scale="$scale" \
        task.data="$data/bin" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    # --lenpen 1 divides a hypothesis's log-probability by its length, as appendix G.4 does
    translate test "$out" "$out/checkpoints/checkpoint_best.pt" --beam 4 --lenpen 1
    seqstruct score --from-generate "$out/generate-test.txt" --subwords bpe --detokenize en \
        --references "$data/raw/test.en" --record "$out/score.json"
    record "validation_perplexity[perplexity]=train.log:valid_ppl@best" score.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
