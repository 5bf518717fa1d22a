#!/usr/bin/env bash
# Tables 4.3, 5.4a and 5.4b of Peng (2022): word perplexity on WikiText-103 of language models with attention of linear
# cost, in blocks of 512 tokens; --from DIR holds wiki.{train,valid,test}.tokens or wikitext-103-v1.zip.
# 4.3: sizes of table A.2, no context; the stateful row hands (S, z) on to the next block, in training and evaluation.
# "Random feature map size" 64 is read as D, half the size of the Gaussian map, as the same words are meant in table
# A.3, though section 4.4.1 has maps of 64 dimensions.  The stateful row keeps one random matrix a head, in training
# too.  Of the rates and dropouts of table A.2 the middle and the least are taken, not searched for.
# 5.4a: 16 layers (Baevski & Auli 2019), with contexts of 0 and 480 tokens of each block.  5.4b: 32 layers with layer
# dropout (Kasai et al. 2021), with 256; "T2R 32 from softmax" is fine-tuned from the 32 layers of BASE.
# Scale small is table 4.3-stand-in: the Brown corpus by subwords, four layers of size 128, twelve epochs, after which
# validation no longer falls, regularised as a million words ask for; also tested with 256 tokens of context, and the
# stateful row without the state.  BASE-GATE is equation A.2, "gated delta" a mechanism of later years.  RFA holds
# denominators at 1, as the released code does.  An end of line is a word.
# "one matrix": gated RFA without the draws, as the stateful row is, in blocks that are shuffled, as that is not.  Near
# the stateful row, what that is behind RFA-GATE-Gaussian by comes of draws; near RFA-GATE-Gaussian, of the order of
# blocks or of training with the state.
# Table 4.3-rates, "rates, M": two epochs of M with the rate of all, twice and four times it.  "M, rate searched" has the
# best of those: if softmax is not behind gated RFA there by more than seeds differ, its being behind is its rate.
paper=peng_thesis table=4.3 family="efficient attention language models"
licence="WikiText: CC BY-SA; Brown: non-commercial; made-up sentences at the smoke scale: none needed"
rows=(BASE phi-elu RFA-Gaussian RFA-GATE-Gaussian RFA-GATE-Gaussian-Stateful Linformer ABC-RD ABC-MLP T2R BASE-GATE
      "gated delta" "RFA-GATE-Gaussian, one matrix" {BASE,RFA-GATE-Gaussian}", rate searched"
      "rates, "{BASE,RFA-GATE-Gaussian})
smoke_rows=(ABC-MLP RFA-GATE-Gaussian-Stateful "rates, BASE" "16 layers Linformer 32" "32 layers T2R 32 from softmax")
paper_rows=({small,big}\ {BASE,phi-elu,RFA-{,GATE-}{Gaussian,arccos},RFA-GATE-Gaussian-Stateful}
            16\ layers\ {BASE,{Linformer,ABC-RD,ABC-MLP}\ {32,64}}
            32\ layers\ {BASE,ELU\ 128,{RFA,T2R}\ 32,T2R\ 32\ from\ softmax,ABC-MLP\ 32})
baselines=(bigram trigram 5-gram)

# METRIC SUBSET CONTEXT: the perplexity of a word in a prepared text
perplexity() {
    local reading=(--task language_modeling --sample-break-mode none --batch-size 8 --context-window "$3")
    [[ "$row" != *Stateful || "$1" == *no_state ]] || reading=(--task stream_language_modeling --batch-size 1)
    log="$1.log" fairseq-eval-lm "$data/bin" --user-dir seqstruct --path "$path/checkpoint_best.pt" --gen-subset "$2" \
        --tokens-per-sample 512 "${reading[@]}" "${cpu[@]}"
    found+=("$1=$out/$1.log:$data/text/$2.txt")
}

cell() {
    size=() found=() start=() renamed=() path="$out/checkpoints" logs=train.log model="${row#* layers }" minutes=1200 disk=4000
    case "$row" in
        "16 layers"*) table=5.4a size=(size=layers_16) minutes=11520 disk=12000 ;;
        "32 layers"*) table=5.4b size=(size=layers_32) minutes=11520 disk=12000 ;;
        small\ * | big\ *) size=(size="${row%% *}") model="${row#* }" ;;
    esac
    raw nltk
    case "$scale" in
        smoke)
            dataset="300 made-up sentences" minutes=0.3 disk=2 size=()
            prepare brown data-prep/brown.sh "${from[@]}" --subwords bpe --vocabulary 500 ;;
        small)
            dataset="Brown corpus (no part of the published comparison), 51752 training sentences, 8000 subwords of "
            dataset+="them, 12 epochs" minutes=60 disk=200
            prepare brown data-prep/brown.sh "${from[@]}" --subwords bpe --vocabulary 8000 ;;
        paper)
            dataset="WikiText-103, blocks of 512 words"
            raw wikitext103
            prepare wikitext103 data-prep/wikitext103.sh "${from[@]}" ;;
    esac
    [[ "$scale" == paper || "$row" == *layers* ]] || table=4.3-stand-in
    training=(--config-dir configs/peng_thesis/efficient_lm --config-name train scale="$scale" "${size[@]}"
              task.data="$data/bin")
    if [[ "$row" == "rates, "* || "$row" == *", rate searched" ]]; then
        model="${model#rates, }" model="${model%, *}"
        shared "$(slug "$model")-search" seqstruct search "${training[@]}" row="$(slug "$model")" \
            --settings configs/peng_thesis/efficient_lm/search.yaml
        start=("\$(cat $shared/chosen)")
    fi
    if [[ "$row" == "rates, "* ]]; then
        table=4.3-rates minutes="$(times "$minutes" 0.5)" dataset="${dataset/12 epochs/two epochs}"
        record "$shared/measurements.json"
        return
    fi
    if [[ "$row" == *gram ]]; then
        baseline "$row"
        # whatever the context of the models, n-grams have their own
        for split in validation test; do
            for metric in 5.4a:"$split"_perplexity_{0,480} 5.4b:"$split"_perplexity; do
                renamed+=("${metric}[perplexity]=baseline.json:${split}_perplexity")
            done
        done
        [[ "$scale" != paper ]] || record "${renamed[@]}"
        return
    fi
    case "$model" in Linformer | ABC-RD | ABC-MLP | T2R) model+=" 32" ;; "ELU 128") model=phi-elu ;; esac
    training=(fairseq-hydra-train "${training[@]}" common.seed="$seed")
    if [[ "$row" == *BASE || "$model" == *" from softmax" ]]; then
        shared softmax-lm "${training[@]}" row=base
        start=(checkpoint.finetune_from_model="$shared/checkpoint_best.pt") model="${model% from softmax}"
    fi
    if [[ "$row" == *BASE ]]; then
        path="$shared" logs="$shared/train.log"
    else
        "${training[@]}" row="$(slug "$model")" "${start[@]}" checkpoint.save_dir="$path"
    fi
    for subset in valid test; do
        metric="${subset/valid/validation}_perplexity"
        case "$row" in
            "16 layers"*) perplexity "${metric}_0" "$subset" 0; perplexity "${metric}_480" "$subset" 480 ;;
            "32 layers"*) perplexity "$metric" "$subset" 256 ;;
            *) perplexity "$metric" "$subset" 0 ;;
        esac
    done
    if [[ "$table" == 4.3-stand-in ]]; then
        case "$row" in
            *Stateful) perplexity test_perplexity_no_state test 0 ;;
            *) perplexity test_perplexity_context_256 test 256 ;;
        esac
    fi
    python -m seqstruct.harness.word_perplexity "${found[@]}" --out "$out/found.json"
    record found.json "parameters[parameters]=$logs:parameters"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
