#!/usr/bin/env bash
# Latent dependency trees, no tree ever given (Peng 2022, sections 2.2.3 and 2.5 name the use; there is no table):
# sentiment of SST over the heads that a classifier chooses for its words, and tree transduction (Kim et al. 2017) with
# hard parents in its encoder, each with every surrogate gradient.  For transduction eta is chosen on the validation
# loss, the same ones tried for STE and SPIGOT; for sentiment it is that of table 2.2 (appendix C.1.2), not tuned.
paper=peng_thesis table=latent-trees family="structured argmax"
licence="SST: for research; formulas and the sentences of the smoke scale are made"
rows=({SST,transduction}" "{pipeline,ste,spigot,marginal}) smoke_rows=("SST spigot" "transduction spigot")
baselines=("SST majority" "transduction copy" "transduction constant")

cell() {
    gradient="${row#* }" minutes=4 disk=10 epochs=5 counts=(1000 100 100) of=8
    case "$scale" in
        smoke) minutes=0.3 epochs=2 counts=(60 10 6) of=2 ;;
        paper) minutes=60 epochs=30 counts=(5000 200 200) of=13 ;;
    esac
    if [[ "$row" == SST* ]]; then
        dataset="SST binary sentences, learned word embeddings, $epochs epochs; no trees"
        raw text-classification
        prepare "sentiment-$scale" data-prep/ud_english.sh "${from[@]}" --parts classes
        [[ "$gradient" != majority ]] || { baseline majority; return; }
        fairseq-hydra-train --config-dir configs/peng_thesis/latent_trees --config-name train row="$gradient" \
            scale="$scale" task.data="$data" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
        fairseq-validate "$data" --user-dir seqstruct --task joint_parsing --criterion joint_parsing --batch-size 32 \
            --path "$out/checkpoints/checkpoint_best.pt" --valid-subset valid,test --log-format json "${cpu[@]}"
        record "validation_accuracy[%]=validate.log:valid_accuracy" "test_accuracy[%]=validate.log:test_accuracy"
        return
    fi
    dataset="${counts[0]} formulas of each depth 2 to 4 to train, ${counts[2]} of each depth 2 to 6 to test, at most "
    dataset+="$of epochs; mean lengths of prefix forms by depth 14, 22, 33, 45, 58 (open in the source)"
    [[ "$scale" == paper ]] || dataset+=" (published: 5000 and 200, 13 epochs)"
    dataset+="; here $epochs epochs"
    prepare "formulas-$scale-seed$seed" seqstruct prepare tree-transduction --train "${counts[0]}" \
        --valid "${counts[1]}" --test "${counts[2]}" --seed "$seed"
    case "$gradient" in copy | constant) baseline "$gradient"; return ;; esac
    settings=(--config-dir configs/structured_attention/tree_transduction --config-name train row="latent_$gradient"
              scale="latent_$scale" task.data="$data")
    chosen=() searched=()
    case "$gradient" in
        ste | spigot)
            shared "search-$gradient-$scale-seed$seed" seqstruct search "${settings[@]}" \
                --settings configs/structured_attention/tree_transduction/search.yaml
            chosen=("\$(cat $shared/chosen)") searched=("$shared/measurements.json") ;;
    esac
    fairseq-hydra-train "${settings[@]}" "${chosen[@]}" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    for split in valid test; do
        log="decode-$split.log" fairseq-generate "$data" --user-dir seqstruct --task tree_transduction --beam 5 \
            --path "$out/checkpoints/checkpoint_best.pt" --gen-subset "$split" --max-len-a 1.4 --max-len-b 5 \
            --batch-size 50 --results-path "$out" --cpu --num-workers 0
    done
    python -m seqstruct.scoring.first_failure "$data" --results "$out" --out "$out/shares.json"
    record shares.json "${searched[@]}"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
