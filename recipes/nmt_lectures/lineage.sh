#!/usr/bin/env bash
# The lineage of translation on Multi30k (Elliott et al. 2016), English to German: one budget, schedule and search.
# Layers of size 128 (recurrent models two, GNMT four; ConvS2S 4 + 3, Transformers 3 + 3), joint BPE of 5,000 types,
# batches of 64, Adam; of three learning rates the best after two epochs, halved where validation stands still, to the
# 40th epoch or the fifth without a gain. Beam 5, log-probability divided by length. "decoder M": a Transformer with M
# in the decoder's self-attention; "cross and decoder M": across too. Other subwords than BPE's are at most as many;
# "sampled" rows draw them anew in each epoch. "M, a quarter": of the training pairs, up to 120 after a search of four.
# "GNMT, 8 bits" decodes as Wu et al. (2016); "grConv, orthogonal" begins as Cho et al. (2014b). Other tables: "rates,
# M", two epochs of M at the greatest rate, twice and four times it ("M, greater rate": the best), and what GNMT gains
# by "penalties A B", of length and coverage, and an epoch of expected GLEU. Differences: to the Transformer of as many
# pairs (of fixed pieces in "Transformer, unigram sampled, a quarter") or GNMT, by paired bootstrap.
paper=nmt_lectures table=lineage family="translation lineage" baselines=(copy)
licence="Multi30k: for research; made-up sentences at the smoke scale: none needed"
models=(  # row, files of row/ and size/, what it takes beside a Transformer, subwords if not BPE
    "Transformer: transformer transformer 1" "RNNsearch: rnnsearch rnnsearch 1" "Luong general: luong_general 2 1"
    "ConvS2S: convs2s convolution 1" "GNMT: gnmt 4 1.5" "RNN encoder-decoder: rnn_encoder_decoder 1 1"
    "Sutskever: sutskever 2 1" "Sutskever, source not reversed: sutskever_source_not_reversed 2 1"
    "grConv: grconv 1 1.5" "grConv, orthogonal: grconv pyramid 1.5" "Luong dot: luong_dot 2 1"
    "Luong concat: luong_concat 2 1" "Luong location: luong_location 2 1" "Luong local-m: luong_local_m_general 2 1"
    "Luong local-p: luong_local_p_general 2 1" "GNMT, expected GLEU: gnmt 4 0.7" "GNMT, 8 bits: gnmt 4 0.1"
    "Luong general, one layer: luong_general 1 0.8" "Transformer, unigram: transformer transformer 1 sentencepiece"
    "Transformer, unigram sampled: transformer_unigram_sampled transformer 2 sentencepiece"
    "Transformer, BPE sampled: transformer_bpe_sampled transformer 2"
    "Transformer, words: transformer transformer 1 words" "Transformer, characters: transformer transformer 4 characters"
    "Transformer, words and characters: transformer transformer 1.2 mixed"
)
rows=("${models[@]%%: *}") smoke_rows=("Luong general" "decoder gated_delta" "rates, RNNsearch" "ConvS2S, greater rate"
    "Transformer, unigram sampled, a quarter")
rows+=("decoder "{linear,rfa,abc_mlp,t2r,performer,lsh{,"(buckets=2)"},gated_delta,{superposition,nondeterministic}_stack})
rows+=("cross and decoder "{linear,rfa,abc_mlp} {RNNsearch,ConvS2S,"Luong general",GNMT}", greater rate")
rows+=("penalties "{"0.2 0","0 0.2","0.2 0.2"} "Transformer"{,", BPE sampled",", unigram"{," sampled"}}", a quarter")
for model in "${models[@]:0:7}"; do rows+=("rates, ${model%%: *}"); done

cell() {
    local group=transformer size=transformer slower=1.2 kinds=bpe model base alpha beta other=(--lenpen 1) more=()
    local search="${row%, a quarter}" settings=search long=() part=() fixed=""
    [[ "$row" != *", greater rate" ]] || search="rates, ${row%, *}"
    [[ "$search" != "rates, "* ]] || settings=greater_rates
    for model in "${models[@]}"; do
        [[ "${model%%: *}" != "${search#rates, }" ]] || read -r group size slower kinds <<<"${model#*: }"
    done
    case "$scale" in
        smoke) minutes=0.4 disk=2 types=150 pieces=35 most=6 pairs=200 dataset="400 made-up sentence pairs" ;;
        small) minutes="$(times "$slower" 75)" disk=60 download=1.3 types=5000 pieces=5000 most=120 pairs=7250
            dataset="Multi30k en-de task 1, 29000 pairs, test_2016_flickr, joint BPE of 5000 types" ;;
        paper) echo "its scales are smoke and small" >&2; exit 1 ;;
    esac
    [[ "$row" != *", a quarter" ]] || settings=search_quarter dataset+=", $pairs of them" \
        long=(optimization.max_epoch="$most") part=(--pairs "$pairs" --whole-tests) minutes="$(times "$minutes" 0.4)"
    raw multi30k
    cut bpe
    case "$row" in
        copy) beside=(lineage-penalties); baseline copy --languages en de; return ;;
        "rates, "*) table=lineage-rates minutes="$(times "$minutes" 0.15)"
            chosen "$row" "$group" "$size"
            record "$searched/measurements.json"; return ;;
        "penalties "*) table=lineage-penalties minutes="$(times "$minutes" 0.1)" ;;
        "GNMT, expected GLEU") table=lineage-penalties ;;
    esac
    base="$data" path="$out/checkpoints" logs=train.log decode=(--lenpen 1)
    case "$row" in
        "decoder "*"("*) more=(+model.decoder_self_attention="'${row#decoder }'") ;;
        "decoder "*) more=(+model.decoder_self_attention="${row#decoder }") ;;
        "cross and decoder linear") both linear linear ;;
        "cross and decoder rfa") both "rfa(features=256)" "rfa(features=128)" ;;
        "cross and decoder abc_mlp") both "abc_mlp(slots=32)" "abc_mlp(slots=8)" ;;
    esac
    case "$row" in
        Transformer | "Transformer, a quarter") ;;
        GNMT | "GNMT, "[!g]* | "penalties "*) chosen GNMT gnmt 4
            shared lineage-gnmt-seed"$seed" "${training[@]}" common.seed="$seed"
            path="$shared" logs="$shared/train.log" ;;
        *) [[ "${kinds:=bpe}" == bpe ]] || { dataset="${dataset/BPE/${kinds/sentencepiece/unigram}}" && cut "$kinds"; }
            chosen "$search" "$group" "$size" "${more[@]}"
            "${training[@]}" common.seed="$seed" checkpoint.save_dir="$path" ;;
    esac
    [[ "$row" != *"unigram sampled, a quarter" ]] || base="$data" fixed=", unigram"
    own="$data" rate="${searched:-}" data="$base"
    case "$row" in
        "GNMT, expected GLEU") fairseq-hydra-train --config-dir configs/nmt_lectures --config-name reward \
                size="4_$scale" task.data="$data/bin" checkpoint.finetune_from_model="$path/checkpoint_best.pt" \
                common.seed="$seed" checkpoint.save_dir="$out/checkpoints"
            path="$out/checkpoints" logs=train.log ;;
        "GNMT, 8 bits") decode=(--task translation_gnmt --length-alpha 0.2 --coverage-beta 0.2 --eight-bit) ;;
        "penalties "*) read -r _ alpha beta <<<"$row"
            other=(--task translation_gnmt --length-alpha 0 --coverage-beta 0)
            decode=(--task translation_gnmt --length-alpha "$alpha" --coverage-beta "$beta") ;;
    esac
    if [[ "$table" == lineage ]]; then
        settings="${settings/greater_rates/search}" chosen "Transformer$fixed" transformer transformer
        shared "lineage-$(slug "Transformer$fixed")-seed$seed" "${training[@]}" common.seed="$seed"
    fi
    if [[ "$search" == Transformer ]]; then
        rate="$searched" path="$shared" logs="$shared/train.log" score=()
    else
        log=softmax.log translate test "$out/softmax" "$shared/checkpoint_best.pt" --beam 5 "${other[@]}"
        score=(--against "$out/softmax/generate-test.txt")
        [[ "$own" == "$base" ]] || score+=(--against-data "$base") data="$own"
    fi
    translate test "$out" "$path/checkpoint_best.pt" --beam 5 "${decode[@]}"
    score=(seqstruct score --from-generate "$out/generate-test.txt" --data "$data" "${score[@]}" --metrics bleu)
    "${score[@]}" chrf --record "$out/score.json"
    "${score[@]:0:6}" --metrics tokenized_bleu --lowercase --record "$out/lowercased.json" "test_{}_lowercased"
    record score.json lowercased.json "$rate/measurements.json" "parameters[parameters]=$logs:parameters" \
        "validation_perplexity[perplexity]=$logs:valid_ppl@best/epoch" \
        "training_tokens_per_second[tokens/s]=$logs:wps@median" \
        "decoding_sentences_per_second[sentences/s]=decode.log:sentences_per_second"
}

# CROSS SELF: mechanisms of the decoder
both() { more=(+model.cross_attention="'$1'" +model.decoder_self_attention="'$2'"); }

# SUBWORDS: the corpus, cut by them, in $data
cut() {
    local most="$types" longest=()
    case "$1" in sentencepiece) most="$pieces" ;; characters) longest=(--max-length 1000) ;; esac
    prepare "en-de-$1-$most" data-prep/multi30k.sh "${from[@]}" --src en --trg de --subwords "$1" \
        --vocabulary "$most" "${longest[@]}" "${part[@]}"
}

# NAME ROW SIZE OPTION ...: the words of a training with the rate that a search chose in `training`; its folder, `searched`
chosen() {
    training=(--config-dir configs/nmt_lectures --config-name multi30k row="$2" size="$3_$scale"
        scale="lineage_$scale" "${@:4}" task.data="$data/bin")
    shared "$(slug "$1")-lineage-search" seqstruct search "${training[@]}" \
        --settings "configs/nmt_lectures/$settings.yaml"
    searched="$shared" training=(fairseq-hydra-train "${training[@]}" "\$(cat $shared/chosen)" "${long[@]}")
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
