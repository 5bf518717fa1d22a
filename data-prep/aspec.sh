#!/usr/bin/env bash
# WAT's ASPEC-JE (Nakazawa et al. 2016), Japanese to English as in Kim et al. (2017, section 4.2), to fairseq's format.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/aspec.sh --from DIR --out DIR [options]

Prepares 500,000 random training pairs of at most 50 Japanese characters (or words) and 50 English words; the same limit
holds for validation and test. Tokens that occur fewer than 10 times in training are unknown.

The corpus may not be downloaded by a script: apply for it, with your name and affiliation, at
https://jipsti.jst.go.jp/aspec/ and accept its licence for research; unpack ASPEC.tar.gz and give the folder ASPEC-JE,
with train/train-1.txt to train-3.txt, dev/dev.txt and test/test.txt.

  --from DIR        the folder ASPEC-JE
  --out DIR         folder to make; it appears when all is done
  --units KIND      of Japanese: characters, kytea or mecab (default characters); KyTea (http://www.phontron.com/kytea/)
                    and MeCab (apt-get install mecab mecab-ipadic-utf8) must be installed to be chosen; the paper has KyTea
  --sample N        training pairs drawn at random (default 500000; 0 for all that fit)
  --threshold N     occurrences in training that a token needs (default 10)
  --workers N       processes that binarise (default 1)
  --help            this text

DIR then holds bin/ (for fairseq-train), raw/ (references for seqstruct score), text/ and corpus.json (settings,
checksums, counts). The environment variable PYTHON names the interpreter (default python3 or .venv's).
TEXT
}

out='' from='' units=characters sample=500000 threshold=10 workers=1
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --out | --from | --units | --sample | --threshold | --workers) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) fail "unknown option $1 (see --help)" ;;
  esac
  case $1 in
    --out) out=$2 ;;
    --from) from=$2 ;;
    --units) units=$2 ;;
    --sample) sample=$2 ;;
    --threshold) threshold=$2 ;;
    --workers) workers=$2 ;;
  esac
  shift 2
done
[ -n "$out" ] || fail "--out DIR is needed (see --help)"
[ -n "$from" ] || fail "--from DIR is needed: the corpus comes by application alone (see --help)"
[ -d "$from" ] || fail "$from is not a folder"
case $units in characters | kytea | mecab) ;; *) fail "expected the units characters, kytea or mecab, got $units" ;; esac
refuse_taken "$out"
run_python -m seqstruct.data.aspec --from "$from" --out "$out" --units "$units" --sample "$sample" \
  --threshold "$threshold" --workers "$workers"
echo "$out: ready"
