#!/usr/bin/env bash
# Multi30k (Elliott et al. 2016), German to English: the delta rule's family in a decoder's self-attention, or across,
# beside softmax everywhere; the model and the training of scale small in multi30k.sh, three seeds.  Across, the memory
# is what writing the whole source from left to right leaves, and every query of the target reads it.  Row "softmax,
# modern" has rotary positions, grouped heads, RMS norms, SwiGLU and no biases, at the same inner size.
# Beam 4, sacreBLEU on the raw references of test_2016_flickr.  Scale smoke is a few hundred made-up sentence pairs,
# which prove nothing.
paper=nmt_lectures table=memories family="translation lineage" seeds_small=3
licence="Multi30k: for research; made-up sentences at the smoke scale: none needed"
rows=(softmax "softmax, modern") smoke_rows=("softmax, modern" "gsa, cross") baselines=(copy)
for mechanism in delta gated_delta gsa mlstm; do rows+=("$mechanism, decoder" "$mechanism, cross"); done

cell() {
    case "$scale" in
        smoke) minutes=0.5 disk=2 types=150 epochs=8 ;;
        small) minutes=20 disk=50 download=1.3 types=5000 epochs=9 ;;
        paper) echo "its scales are smoke and small" >&2; exit 1 ;;
    esac
    dataset="Multi30k de-en task 1, 29000 pairs, test_2016_flickr, joint BPE of $types types, at most $epochs epochs"
    [[ "$scale" != smoke ]] || dataset="400 made-up sentence pairs, ${dataset#*flickr, }"
    raw multi30k
    prepare "de-en-bpe-$types" data-prep/multi30k.sh "${from[@]}" --src de --trg en --vocabulary "$types"
    [[ "$row" != copy ]] || { baseline copy --languages de en; return; }
    group="$(slug "$row")"
    fairseq-hydra-train --config-dir configs/multi30k --config-name train row="${group/%softmax/tf}" scale="$scale" \
        task.data="$data/bin" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    translate test "$out" "$out/checkpoints/checkpoint_best.pt" --beam 4 --lenpen 1
    seqstruct score --from-generate "$out/generate-test.txt" --subwords bpe --detokenize en \
        --references "$data/raw/test.en" --record "$out/score.json"
    record_translation score.json
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
