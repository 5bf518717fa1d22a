#!/usr/bin/env bash
# Table 3 of Stack Attention (section 8 and appendix G): German-English translation, three sizes of three models.
# Trained on 100,000 pairs of Europarl v7, validated on newstest2016 and tested on newstest2017, downloaded or named by
# --from.  Scale paper is the published setting: each of 5 runs draws a learning rate, a validation every 50,000 pairs,
# the best of 5 by validation.  There is no scale small: recipes/multi30k has the corpus that a laptop can train on.
# Scale smoke has a few hundred made-up pairs, which prove nothing.
# Deviations.  Decoding: the source divides log-probabilities by length (EOS counted) before it selects the next beam,
# so that a hypothesis that has ended keeps its place there against longer ones; fairseq takes ended hypotheses out of
# the beam, divides theirs alone (--lenpen 1, EOS counted) and goes on until it has as many of them as the beam is wide.
# All that is unfinished at one step has one length, so there division changes no choice.  A shard of the training set
# is an epoch of fairseq's, as in table-2.sh.  Test BLEU is sacreBLEU on the raw references.
paper=stack_attention table=3 family="stack attention translation" seeds_paper=5
licence="Europarl and WMT news test sets: for research; made-up pairs at the smoke scale: none needed"
rows=({Tf,Tf+Sup,Tf+Nd}" d=160" {Tf,Tf+Sup,Tf+Nd}" d=240" {Tf,Tf+Sup,Tf+Nd}" d=360")
baselines=(copy) smoke_rows=("Tf+Nd d=160")

cell() {
    size="d${row##*=}" drawn=() options=() disk="$(times "${row##*=}" 2.4)" download=210
    case "$scale" in
        smoke)
            options=(--pairs 400 --vocabulary 150 --min-frequency 5) size=smoke minutes=0.5 disk=3 download=0
            dataset="400 made-up sentence pairs, size 32"
            ;;
        small) echo "table 3 has the scales smoke and paper; at scale small see recipes/multi30k" >&2; exit 1 ;;
        paper)
            case "$row" in Tf+Sup*) slower=0.84 ;; Tf+Nd*) slower=1.69 ;; *) slower=0.56 ;; esac
            minutes="$(times "$slower" "${row##*=}")" drawn=("optimization.lr=[$(log_uniform lr 1e-5 1e-3)]")
            dataset="100000 pairs of Europarl v7 of at most 150 characters a side, newstest2016 and newstest2017 "
            dataset+="alike, SentencePiece BPE of 32000 types of which those used 50 times"
            ;;
    esac
    raw europarl
    prepare "europarl-$scale" data-prep/europarl.sh "${from[@]}" "${options[@]}"
    [[ "$row" != copy ]] || { baseline copy --languages de en; return; }
    fairseq-hydra-train --config-dir configs/stack_attention/europarl --config-name train row="$(slug "${row% *}")" \
        size="$size" scale="$scale" "${drawn[@]}" task.data="$(shards "$data/bin")" common.seed="$seed" \
        checkpoint.save_dir="$out/checkpoints"
    fairseq-generate "$data/bin/0" --user-dir seqstruct --path "$out/checkpoints/checkpoint_best.pt" --source-lang de \
        --target-lang en --gen-subset test --beam 4 --lenpen 1 --max-len-a 1.5 --max-len-b 10 --max-tokens 4000 \
        --results-path "$out" "${cpu[@]}"
    seqstruct score --from-generate "$out/generate-test.txt" --data "$data" --record "$out/scores.json"
    record "validation_perplexity[perplexity]=train.log:valid_ppl@best" scores.json \
        "parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
