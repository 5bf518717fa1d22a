#!/usr/bin/env bash
# Figure of section 6 and appendix D of Stack Attention: cross-entropy above the true distribution, on validation
# strings and on longer test strings, of Transformers and LSTMs, alone, with a superposition stack and with a
# nondeterministic stack, on five context-free languages; the parameters are those of table 5.
# Scale small has the published data, models, batches, optimizer and patience, and each run draws its learning rate; there
# are three runs of at most 60 epochs (published: ten of at most 200), an hour at most of one thread each, with compiled
# kernels.
# Trivial baseline: a 5-gram of the same strings.  Of a language's three Transformers and three LSTMs the order on
# validation decides, each by its best draw: on the hardest language it speaks against section 6 if Tf or Tf+Sup is below
# Tf+Nd, elsewhere if Tf is below Tf+Sup; a difference that draws make too (Welch's test) is none.
# Figures 3 and 4: a Transformer with a stack leaves actions.png, what its stack does with a string of marked reversal
# or of Dyck, by expectation where it is nondeterministic; that also leaves run.png, its most probable run.
paper=stack_attention table=figure-2 family="stack attention language models"
licence="none needed, the strings are sampled" seeds_small=3 seeds_paper=10
rows=() baselines=()
for language in {marked,unmarked,padded}-reversal dyck hardest-cfl; do
    rows+=("$language "{Tf,Tf+Sup,Tf+Nd,LSTM,LSTM+Sup,LSTM+Nd}) baselines+=("$language 5-gram")
done
smoke_rows=("dyck Tf+Nd") smoke_baselines=("dyck 5-gram")

cell() {
    language="${row% *}" model="${row##* }" disk=10
    counts=(10000 1000 100) lengths=(40:80 40:100) rate=()
    case "$scale" in
        smoke) minutes=0.4 counts=(200 50 2) lengths=(5:20 5:30) ;;
        small) minutes=25 ;;
        paper) minutes=80 ;;
    esac
    case "$model $language" in
        Tf+Nd* | LSTM+Nd*) slower=1.2 ;;
        LSTM\ *) slower=0.2 ;;
        LSTM+Sup*) slower=0.5 ;;
        *) slower=1 ;;
    esac
    case "$model $language" in *Nd\ padded-reversal | *Nd\ hardest-cfl) slower=2 ;; esac
    minutes="$(times "$minutes" "$slower")"
    [[ "$scale" == smoke ]] || rate=("optimization.lr=[$(log_uniform lr 0.0005 0.01)]")
    dataset="$language, ${counts[0]} strings of length ${lengths[0]/:/ to }, test to ${lengths[1]#*:}"
    [[ "$scale" != small ]] || dataset+=", at most 60 epochs, learning rate drawn (published: 200, ten draws)"
    prepare_strings "$language-$scale-seed$seed" "$language"
    [[ "$model" != 5-gram ]] || { baseline 5-gram; return; }
    group="$(slug "$model")"
    case "$model $language" in *Nd\ padded-reversal | *Nd\ hardest-cfl) group+="3" ;; esac
    fairseq-hydra-train --config-dir configs/stack_attention/cfl --config-name train row="$group" scale="$scale" \
        "${rate[@]}" task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    validate_strings valid,test
    case "$language" in
        marked-reversal)
            string="0 1 1 0 1 0 0 1 1 1 0 0 0 1 0 1 1 0 1 0 # 0 1 0 1 1 0 1 0 0 0 1 1 1 0 0 1 0 1 1 0" ;;
        dyck) string="[ ( ( ) [ ( [ ] [ ] ) ] ) ( ) ] ( [ ( ( ) [ ] ) ] [ ] ) [ ( [ ] ) ( ) ]" ;;
        *) string= ;;
    esac
    if [[ -n "$string" && "$model" == Tf+* ]]; then
        best="$out/checkpoints/checkpoint_best.pt"
        seqstruct plot attention "$best" "$string" --stacks --out "$out/actions.png"
        [[ "$model" != Tf+Nd ]] || seqstruct plot run "$best" "$string" --out "$out/run.png"
    fi
    record "validation_cross_entropy_difference[nats per symbol]=validate.log:valid_difference/string length" \
        "test_cross_entropy_difference[nats per symbol]=validate.log:test_difference/string length" \
        "5:parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
