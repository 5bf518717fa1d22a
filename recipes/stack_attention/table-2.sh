#!/usr/bin/env bash
# Tables 2 and 2-stand-ins of Stack Attention (section 7 and appendix F): single-sentence language modelling by a
# Transformer alone, with a superposition stack and with a nondeterministic stack in the third of five layers.
# The rows of table 2 are on the Penn Treebank as preprocessed by Dyer et al. (2016), which needs a licence: --from
# names the folder with its .mrg files.  They have the scale paper: each of 20 runs draws a learning rate and a batch
# size, a validation every 20,000 sentences, the best of 20 by validation.  The stand-ins are on free text in the same
# form: nltk's sample of the treebank, Brown and WikiText-2; at scale small models are narrower, there are 4,000
# sentences and one learning rate, and of WikiText-2 they are the first of its validation file, whose last six articles
# validate, so that its small files suffice.  Scale smoke has a few hundred made-up trees, which prove nothing.
# Deviations: EOS stands for BOS at the input, as in fairseq; training sentences longer than a whole batch (at most 128
# to 512 tokens) are left out; a shard of the training set is an epoch of fairseq's, so a learning rate of a plateau and
# the patience count validations, and batches are made within a shard.
paper=stack_attention table=2 family="stack attention sentence language models" seeds_paper=20
licence="Penn Treebank: of the Linguistic Data Consortium; nltk's sample of it and Brown: non-commercial; WikiText-2: "
licence+="CC BY-SA; made-up sentences at the smoke scale: none needed"
rows=({treebank-sample,brown,wikitext2}" "{Tf,Tf+Sup,Tf+Nd}) paper_rows=(Tf Tf+Sup Tf+Nd "${rows[@]}")
baselines=({treebank-sample,brown,wikitext2}" "{bigram,trigram,5-gram})
paper_baselines=(bigram trigram 5-gram "${baselines[@]}")
smoke_rows=(Tf+Nd) smoke_baselines=(bigram trigram 5-gram)

cell() {
    corpus="${row% *}" model="${row##* }" sentences=()
    [[ "$corpus" != "$model" ]] || corpus=ptb
    [[ "$corpus" == ptb ]] || table=2-stand-ins
    case "$corpus" in ptb) raw ptb ;; wikitext2) raw wikitext-2-raw ;; *) raw nltk ;; esac
    case "$scale" in
        smoke) minutes=0.4 disk=2 dataset="600 made-up trees, at most 2 epochs" ;;
        small)
            minutes=3 disk=60 sentences=(--train-sentences 4000) part="the first 4000"
            limits="at most 6 epochs, size 128, learning rate 0.002"
            ;;
        paper) minutes=60 disk=260 part=all limits="1000 epochs, size 256" ;;
    esac
    case "$model" in Tf+Sup) minutes="$(times "$minutes" 1.3)" ;; Tf+Nd) minutes="$(times "$minutes" 1.6)" ;; esac
    case "$corpus $scale" in
        "ptb small") echo "row $row is table 2's: it has the scales paper and smoke" >&2; exit 1 ;;
        "ptb paper") dataset="Penn Treebank, sections 02-21, 24, 23, unknown words in classes as by Dyer et al." ;;
        *small | *paper) dataset="$corpus (no part of the published comparison), $part training sentences, $limits" ;;
    esac
    if [[ "$corpus $scale" == "wikitext2 small" ]]; then
        corpus+=-part dataset="the validation file of WikiText-2 split by articles and its test file (no part of the published "
        dataset+="comparison), $part training sentences, $limits"
    fi
    prepare "sentences-$corpus-$scale" data-prep/ptb_sentences.sh --corpus "$corpus" "${from[@]}" "${sentences[@]}"
    case "$model" in *gram) baseline "$model" --sentences; return ;; esac
    group="$(slug "$model")" drawn=()
    [[ "$scale" == paper || "$model" != Tf+Sup ]] || group+="_$scale"
    [[ "$scale" != paper ]] ||
        drawn=("optimization.lr=[$(log_uniform lr 1e-6 1e-4)]" dataset.max_tokens="$(whole max_tokens 128 512)")
    fairseq-hydra-train --config-dir configs/stack_attention/ptb --config-name train row="$group" scale="$scale" \
        "${drawn[@]}" task.data="$(shards "$data/bin")" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    fairseq-validate "$(shards "$data/bin")" --user-dir seqstruct --task language_modeling --sample-break-mode eos \
        --tokens-per-sample 1024 --path "$out/checkpoints/checkpoint_best.pt" --valid-subset valid,test \
        --max-tokens 4096 --log-format json "${cpu[@]}"
    record "validation_perplexity[perplexity]=validate.log:valid_ppl" \
        "test_perplexity[perplexity]=validate.log:test_ppl" "parameters[parameters]=train.log:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
