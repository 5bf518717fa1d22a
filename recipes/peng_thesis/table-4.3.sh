#!/usr/bin/env bash
# Table 4.3 of Peng (2022): word perplexity on WikiText-103 of language models with attention of linear cost, in blocks
# of 512 tokens without context; --from DIR holds wiki.{train,valid,test}.tokens or wikitext-103-v1.zip.  The rate is
# the middle of those searched over, the dropout the least.  The stateful row hands (S, z) on to the next block, in
# training and evaluation.  Table A.2's "random feature map size" 64 is read as D, half the size of the map, as the same
# words are meant in Table A.3.
# Scales small and smoke are table 4.3-stand-in, with the rows of table 5.4a too: the Brown corpus by subwords, also
# tested on WikiText-2's test text, lowercased as Brown is, and with 256 tokens of each block of 512 as context.
# Characters that Brown lacks are unknown.  BASE-GATE is equation A.2, softmax over keys that the gate decays; NoFloor
# has denominators as in the equations, the other rows of RFA hold them at 1, as the released code.  The averaged model
# is the mean of the last five checkpoints, a 24th of the training apart.  An end of line is a word.
set -euo pipefail
paper=peng_thesis table=4.3 family="efficient attention language models"
licence="WikiText: CC BY-SA; Brown: non-commercial"
rows=(BASE phi-elu RFA-Gaussian RFA-GATE-Gaussian RFA-GATE-Gaussian-Stateful RFA-Gaussian-NoFloor
      RFA-GATE-Gaussian-NoFloor Linformer ABC-RD ABC-MLP BASE-GATE)
smoke_rows=(ABC-MLP RFA-GATE-Gaussian-Stateful)
paper_rows=({small,big}" "{BASE,phi-elu,RFA-Gaussian,RFA-arccos,RFA-GATE-Gaussian,RFA-GATE-arccos,RFA-GATE-Gaussian-Stateful})
baselines=(bigram trigram 5-gram)

cell() {
    table=4.3-stand-in
    case "$scale" in
        smoke) dataset="300 made-up sentences" minutes=0.3 disk=2 ;;
        small) dataset="Brown corpus (no part of the published comparison), 51752 training sentences, 8000 subwords of them, 3 epochs; WikiText-2's test text, lowercased"
               minutes=15 disk=200 ;;
        paper) table=4.3 dataset="WikiText-103, blocks of 512 words" minutes=5760 disk=4000 ;;
    esac
    raw nltk
    case "$scale" in
        smoke) prepare running-text data-prep/brown.sh "${from[@]}" --subwords bpe --vocabulary 500 ;;
        small) prepare running-text data-prep/brown.sh "${from[@]}" --lowercase --subwords bpe --vocabulary 8000 ;;
        paper) prepare wikitext103 data-prep/wikitext103.sh "${from[@]}" ;;
    esac
    case "$row" in bigram | trigram | 5-gram) baseline "$row"; return ;; esac
    fairseq-hydra-train --config-dir configs/peng_thesis/efficient_lm --config-name train row="$(slug "${row#* }")" \
        scale="$scale" $([[ "$scale" != paper ]] || echo size="${row%% *}") \
        task.data="$data/bin" common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
    stream=(--task language_modeling --sample-break-mode none --batch-size 8)
    [[ "$row" != *Stateful ]] || stream=(--task stream_language_modeling --batch-size 1)
    record "parameters[parameters]=train.log:parameters"
}

# shellcheck source=recipes/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
