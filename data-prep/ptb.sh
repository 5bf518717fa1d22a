#!/usr/bin/env bash
# Penn Treebank as Mikolov et al. (2010) cut it down to 10,000 types, ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/ptb.sh --from DIR --out DIR [options]

Prepares the language modeling text of Mikolov et al. (2010): 42,068 training, 3,370 validation and 3,761 test
sentences, 887,521, 70,390 and 78,669 words.  The numbers of lines and words are verified.

The Penn Treebank is licensed by the Linguistic Data Consortium (LDC99T42), so nothing is downloaded.  Who has the
licence finds the text in simple-examples.tgz on Tomas Mikolov's page of RNNLM: put it, or the three files
data/ptb.train.txt, ptb.valid.txt and ptb.test.txt out of it, into a folder and name that with --from.
Without it data-prep/brown.sh prepares a corpus of much the same size.

  --out DIR          folder to make; it appears when all is done
  --from DIR         folder that holds ptb.{train,valid,test}.txt or simple-examples.tgz
  --unchecked        take the files as they are, whatever text they hold
TEXT
  word_options 0 1
}

prepare_corpus corpora ptb "$@"
