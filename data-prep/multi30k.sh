#!/usr/bin/env bash
# Multi30k task 1 (Elliott et al. 2016) from its raw files to binarised subwords for fairseq.
set -euo pipefail

base=https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/multi30k.sh --out DIR [options]

Prepares Multi30k task 1: 29,000 training, 1,014 validation and 1,000 test pairs (test_2016_flickr).
Without --from it downloads 1.3 MB from the data set's own repository, for research use. Checksums are verified.

  --out DIR          folder to make; it appears when all is done
  --from DIR         folder that already holds {train,val,test_2016_flickr}.LANGUAGE, plain or .gz
  --downloads DIR    where downloads are kept; a broken one goes on from there at the next call (default OUT.downloads)
  --unchecked        take the files of --from as they are, whatever text they hold
  --src LANGUAGE     source: de, en or fr (default de)
  --trg LANGUAGE     target: de, en or fr (default en)
  --subwords KIND    bpe, words or mixed (after Moses tokenisation), sentencepiece, sentencepiece-bpe or characters
                     (default bpe)
  --vocabulary N     subword types of both languages together (default 6000)
  --lowercase        lowercase both sides
  --max-length N     subwords in a sentence (default 250); longer training pairs are dropped
  --workers N        processes that binarise (default 1)
  --help             this text

DIR then holds bin/ (for fairseq-train), raw/ (references for seqstruct score), text/ (subwords), the subword model and
corpus.json (settings, checksums, counts).  The environment variable PYTHON names the interpreter (default python3 or
.venv's).
If the address is gone: the files are data/task1/raw of https://github.com/multi30k/dataset; name them by --from.
TEXT
}

out='' from='' downloads='' src=de trg=en checksums=(--checksums "$here/multi30k.sha256") options=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --lowercase) options+=("$1"); shift; continue ;;
    --unchecked) checksums=(); shift; continue ;;
    --out | --from | --downloads | --src | --trg | --workers | --subwords | --vocabulary | --max-length)
      [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) fail "unknown option $1 (see --help)" ;;
  esac
  case $1 in
    --out) out=$2 ;;
    --from) from=$2 ;;
    --downloads) downloads=$2 ;;
    --src) src=$2 ;;
    --trg) trg=$2 ;;
    *) options+=("$1" "$2") ;;
  esac
  shift 2
done
[ -n "$out" ] || fail "--out DIR is needed (see --help)"
refuse_taken "$out"
[ -z "$from" ] || [ -d "$from" ] || fail "$from is not a folder"
[ -n "$from" ] || [ ${#checksums[@]} -gt 0 ] || fail "--unchecked needs --from DIR"
for language in "$src" "$trg"; do
  case $language in de | en | fr) ;; *) fail "expected the languages de, en or fr, got $language" ;; esac
done

if [ -z "$from" ]; then
  from=${downloads:-${out%/}.downloads}
  for name in train val test_2016_flickr; do
    for language in "$src" "$trg"; do
      download "$base/$name.$language.gz" "$from/$name.$language.gz"
    done
  done
fi

run_python -m seqstruct.data.parallel --train "$from/train" --valid "$from/val" --test "$from/test_2016_flickr" \
  --src "$src" --trg "$trg" --out "$out" ${checksums[@]+"${checksums[@]}"} ${options[@]+"${options[@]}"}
