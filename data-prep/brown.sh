#!/usr/bin/env bash
# The Brown corpus (Francis and Kucera 1979), a text of the size of the Penn Treebank's, ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/brown.sh --out DIR [options]

Prepares the Brown corpus as a stand-in for the Penn Treebank in language modeling: 51,752 training, 2,747 validation
and 2,841 test sentences, 1,044,930, 58,014 and 58,248 words, lowercased, numbers as N, 10,000 types.  Documents are
dealt out so that each set has all genres.  Without --from it downloads 3.3 MB from the data of nltk, for
non-commercial use.  The checksum is verified.

TEXT
  raw_options "brown.zip"
  word_options 10000 1
}

prepare_corpus corpora brown "$@"
