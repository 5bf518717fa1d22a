#!/usr/bin/env bash
# The models of the lectures on Multi30k (Elliott et al. 2016), English to German, test_2016_flickr.
# Scale paper keeps the published sizes, which are for corpora a hundred times as large.  Scale small has layers of size
# 128 (recurrent models two where the paper has four, four where it has eight; ConvS2S 4 + 3, the Transformer 3 + 3) and
# five epochs, ten minutes of one thread, too little for any of them.  Scale smoke takes a few hundred made-up sentence
# pairs, which prove nothing.
# Subwords are joint: BPE of subword-nmt, unigram pieces of SentencePiece, or as a row's name says ("words" know the
# most frequent ones and <unk>); "sampled" rows train on segmentations drawn anew in each epoch (subword regularization,
# Kudo 2018; BPE dropout, Provilkov et al. 2020); characters train for two epochs.  Beam 5; hypotheses are compared by
# log-probability divided by length, and the other GNMT rows decode that row's model in other ways.  The speeds are the
# median of what training logs and what fairseq-generate says, next to whatever else the machine did.
# A run with attention leaves attention.png, the weights of one test sentence and its reference; that of grConv
# soft_tree.png, its encoder's tree.
paper=nmt_lectures table=multi30k family="translation lineage" baselines=(copy)
licence="Multi30k: for research; made-up sentences at the smoke scale: none needed"
models=(  # row, files of row/ and (but at scale paper) of size/, subwords, how it is decoded if not as the others
    "RNN encoder-decoder: rnn_encoder_decoder 1 bpe" "Sutskever: sutskever 2 bpe"
    "Sutskever, source not reversed: sutskever_source_not_reversed 2 bpe" "RNNsearch: rnnsearch rnnsearch bpe"
    "grConv: grconv 1 bpe" "Luong dot: luong_dot 2 bpe" "Luong general: luong_general 2 bpe"
    "Luong local-p: luong_local_p_general 2 bpe" "GNMT: gnmt 4 bpe" "ConvS2S: convs2s convolution bpe"
    "Transformer: transformer transformer bpe"
    "Transformer, linear attention: transformer_linear_attention transformer bpe"
    "Transformer, BPE sampled: transformer_bpe_sampled transformer bpe"
    "Transformer, unigram: transformer transformer sentencepiece"
    "Transformer, unigram sampled: transformer_unigram_sampled transformer sentencepiece"
    "Transformer, unigram sampled of 64 best: transformer_unigram_sampled_of_64_best transformer sentencepiece"
    "Transformer, words: transformer transformer words"
    "Transformer, words and characters: transformer transformer mixed"
    "Transformer, characters: transformer transformer characters"
    "Transformer, words to unigram: transformer transformer words,sentencepiece"
    "Transformer, unigram to words: transformer transformer sentencepiece,words"
    "Transformer, ensemble of 2: transformer transformer bpe"
    "GNMT, no penalties: gnmt 4 bpe --length-alpha 0 --coverage-beta 0"
    "GNMT, length normalisation: gnmt 4 bpe --length-alpha 0.2 --coverage-beta 0"
    "GNMT, coverage: gnmt 4 bpe --length-alpha 0 --coverage-beta 0.2"
    "GNMT, length normalisation and coverage: gnmt 4 bpe --length-alpha 0.2 --coverage-beta 0.2"
    "GNMT, 8 bits: gnmt 4 bpe --length-alpha 0.2 --coverage-beta 0.2 --eight-bit"
    "Luong location: luong_location 2 bpe" "Luong concat: luong_concat 2 bpe"
    "Luong local-m: luong_local_m_general 2 bpe"
)
rows=("${models[@]%%: *}") smoke_rows=(RNNsearch "Transformer, unigram sampled")

cell() {
    local kinds=bpe group="" decode="" model
    for model in "${models[@]}"; do
        [[ "${model%%: *}" != "$row" ]] || read -r group size kinds decode <<<"${model#*: }"
    done
    case "$scale" in
        smoke) minutes=0.4 disk=2 types=150 pieces=35 epochs=6 ;;
        small) minutes=8 disk=60 download=1.3 types=5000 pieces=5000 epochs=5 ;;
        paper) minutes=900 disk=2000 download=1.3 types=10000 pieces=10000 epochs=20 ;;
    esac
    case "$row" in GNMT | grConv) times=1.5 ;; *ensemble*) times=2 ;; *) times=1 ;; esac
    minutes="$(awk "BEGIN { print $times * $minutes }")"
    training="$scale" longest=()
    [[ "$scale $group" != s*transformer* ]] || training+=_transformer
    [[ "$kinds" != characters ]] || training="${scale}_characters" epochs=2 longest=(--max-length 1000)
    sizes="$(sed -E "s/sentencepiece/$pieces/g; s/[a-z]+/$types/g" <<<"$kinds")"
    joint="joint " && [[ "$kinds" != *,* ]] || joint=""
    dataset="$joint${kinds/,/ to } of ${sizes/,/ and } types, $epochs epochs"
    [[ "$scale" == smoke ]] && dataset="400 made-up sentence pairs, $dataset" ||
        dataset="Multi30k en-de task 1, 29000 pairs, test_2016_flickr, $dataset"
    raw multi30k
    prepare "en-de-${kinds/,/-}-${sizes/,/-}" data-prep/multi30k.sh "${from[@]}" --src en --trg de --subwords "$kinds" \
        --vocabulary "$sizes" "${longest[@]}"
    [[ "$row" != copy ]] || { baseline copy --languages en de; return; }

    train=(fairseq-hydra-train --config-dir configs/nmt_lectures --config-name multi30k row="$group" scale="$training"
        task.data="$data/bin")
    [[ "$scale" == paper ]] || train+=(size="${size}_$scale")
    case "$row" in
        *ensemble*) members=(1 2) ;;
        Transformer | GNMT*) members=("$seed") ;;
        *) members=() && "${train[@]}" common.seed="$seed" checkpoint.save_dir="$out/checkpoints" ;;
    esac
    path="$out/checkpoints/checkpoint_best.pt" logs=train.log
    for member in "${members[@]}"; do
        shared "$group-seed$member" "${train[@]}" common.seed="$member"
        [[ "$member" == "${members[0]}" ]] && path="$shared/checkpoint_best.pt" logs="$shared/train.log" ||
            path+=":$shared/checkpoint_best.pt" logs+="+$shared/train.log"
    done
    read -ra search <<<"${decode:+--task translation_gnmt $decode}"
    [[ -n "$decode" ]] || search=(--lenpen 1)
    translate test "$out" "$path" "${search[@]}" --beam 5
    seqstruct score --from-generate "$out/generate-test.txt" --data "$data" --record "$out/score.json"
    case "$row" in
        Sutskever* | RNN\ enc* | ConvS2S | GNMT,* | *ensemble*) ;;
        grConv) seqstruct plot soft-tree "$path" "@$data/text/test.en" --data "$data/bin" \
            --out "$out/soft_tree.png" ;;
        *) seqstruct plot attention "$path" "@$data/text/test.en" --target "@$data/text/test.de" --data "$data/bin" \
            --out "$out/attention.png" ;;
    esac
    measured=("parameters[parameters]=$logs:parameters"
        "decoding_sentences_per_second[sentences/s]=decode.log:sentences_per_second")
    [[ "$row" == *ensemble* ]] || measured+=("validation_perplexity[perplexity]=$logs:valid_ppl@best")
    [[ "$row" == *ensemble* || -n "$decode" ]] || measured+=("training_tokens_per_second[tokens/s]=$logs:wps@median")
    record score.json "${measured[@]}"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
