#!/usr/bin/env bash
# Any parallel text, from two aligned files for each part to subwords and a folder for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/parallel.sh --train PREFIX --valid PREFIX --test PREFIX --src LANGUAGE --trg LANGUAGE --out DIR [options]

Takes PREFIX.LANGUAGE or PREFIX.LANGUAGE.gz, UTF-8, one sentence a line, line N of one file being the translation of
line N of the other.  Files of unlike length, empty lines, text that Moses's tokeniser has escaped (&apos; and the like)
and bytes that are no UTF-8 are refused with file and line.

  --train PREFIX     to train on: the path without its language and .gz
  --valid PREFIX     to choose the checkpoint by
  --test PREFIX      to translate
  --src LANGUAGE     source, two letters
  --trg LANGUAGE     target, two letters
  --out DIR          folder to make; it appears when all is done
  --subwords KIND    bpe, words or mixed (words and characters) after Moses tokenisation, sentencepiece, sentencepiece-bpe
                     or characters of the text; KIND,KIND: of source and target (default bpe)
  --vocabulary N     subword types of both languages together; N,N: of source and target (default 6000)
  --min-frequency N  uses in training that a piece of sentencepiece needs (default 1)
  --lowercase        lowercase both sides
  --max-length N     subwords in a sentence (default 250); longer training pairs are dropped
  --drop-empty       leave out pairs with an empty side, and say how many
  --deescape         undo Moses's escapes, in the references too; the text stays in tokens
  --max-ratio R      longer to shorter side (default 3); training pairs above it are dropped
  --checksums FILE   SHA-256 of the unpacked input, as sha256sum writes it
  --workers N        processes that binarise (default 1)
  --help             this text

TEXT
  result_of_pairs
}

out='' missing='' options=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --lowercase | --drop-empty | --deescape) options+=("$1"); shift; continue ;;
    --train | --valid | --test | --src | --trg | --out | --subwords | --vocabulary | --min-frequency | --max-length | \
      --max-ratio | --checksums | --workers) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) fail "unknown option $1 (see --help)" ;;
  esac
  [ "$1" != --out ] || out=$2
  options+=("$1" "$2")
  shift 2
done
for name in --train --valid --test --src --trg; do
  case " ${options[*]-} " in *" $name "*) ;; *) missing="$missing $name" ;; esac
done
[ -n "$out" ] || missing="$missing --out"
[ -z "$missing" ] || fail "missing:$missing (see --help)"
refuse_taken "$out"
run_python -m seqstruct.data.parallel "${options[@]}"
