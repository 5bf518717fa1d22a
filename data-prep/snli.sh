#!/usr/bin/env bash
# SNLI (Bowman et al. 2015) and GloVe (Pennington et al. 2014), or RTE 1 to 3, as a folder for the task nli.
set -euo pipefail

snli=https://nlp.stanford.edu/projects/snli/snli_1.0.zip
glove=https://nlp.stanford.edu/data/glove.840B.300d.zip
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/snli.sh --out DIR [options]

Prepares pairs of sentences with their labels and word vectors. Without --from it downloads SNLI (95 MB, licence CC
BY-SA 4.0) and, unless --vectors or --no-vectors is given, GloVe of 840 billion words (2.1 GB, public domain); both come
from their authors' site. Pairs on which the annotators did not agree (label "-") are skipped and counted.

  --out DIR       folder to make; it appears when all is done
  --corpus NAME   snli (default) or rte (needs --from: a folder with nltk's rte.zip)
  --from DIR      folder that already holds snli_1.0_{train,dev,test}.jsonl, and glove.840B.300d.txt if it is wanted
  --downloads DIR where downloads are kept; a broken one goes on from there (default OUT.downloads)
  --vectors FILE  word vectors in text form
  --no-vectors    no word vectors: the model draws and trains its own
  --heads DIR     parses of an external parser, {train,valid,test}.{premise,hypothesis}.conllu, for hard_parents
                  (`seqstruct parse-dependencies` writes such files)
  --lowercase     lowercase all words
  --help          this text

DIR then holds {train,valid,test}.jsonl, vocabulary.txt, nli.json (labels and counts) and vectors.npy. The environment
variable PYTHON names the interpreter (default python3 or .venv's).
TEXT
}

out='' from='' downloads='' corpus=snli vectors='' wanted=yes options=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --lowercase) options+=("$1"); shift; continue ;;
    --no-vectors) wanted=no; shift; continue ;;
    --out | --from | --downloads | --corpus | --vectors | --heads) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) fail "unknown option $1 (see --help)" ;;
  esac
  case $1 in
    --out) out=$2 ;;
    --from) from=$2 ;;
    --downloads) downloads=$2 ;;
    --corpus) corpus=$2 ;;
    --vectors) vectors=$2 ;;
    *) options+=("$1" "$2") ;;
  esac
  shift 2
done
[ -n "$out" ] || fail "--out DIR is needed (see --help)"
case $corpus in snli | rte) ;; *) fail "expected the corpus snli or rte, got $corpus" ;; esac
refuse_taken "$out"
[ -z "$from" ] || [ -d "$from" ] || fail "$from is not a folder"
[ -n "$from" ] || [ "$corpus" = snli ] || fail "--corpus rte needs --from DIR"
[ -z "$vectors" ] || [ -f "$vectors" ] || fail "$vectors is not a file"

# fetch URL MEMBER: a member of a .zip archive.
fetch() {
  download "$1" "$downloads/${1##*/}"
  unzip -q -j -d "$unpacked" "$downloads/${1##*/}" "$2" || fail "${1##*/} is truncated or altered"
}

if [ -z "$from" ]; then
  unpack_into "${downloads:-${out%/}.downloads}"
  fetch "$snli" 'snli_1.0/*.jsonl'
  from=$unpacked
  if [ -z "$vectors" ] && [ "$wanted" = yes ]; then
    fetch "$glove" glove.840B.300d.txt
  fi
fi
if [ -z "$vectors" ] && [ "$wanted" = yes ] && [ "$corpus" = snli ]; then
  vectors=$from/glove.840B.300d.txt
  [ -f "$vectors" ] || fail "$vectors: no such file (give --vectors FILE or --no-vectors)"
fi
[ -z "$vectors" ] || options+=(--vectors "$vectors")

run_python -m seqstruct prepare nli "$corpus" --from "$from" --out "$out" ${options[@]+"${options[@]}"}
echo "$out: ready"
