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

  --out DIR          folder to make; it appears when all is done
  --from DIR         folder that holds brown.zip
  --unchecked        take the files as they are, whatever text they hold
  --vocabulary N     most frequent types kept, special symbols counted, 0: all (default 10000)
  --min-count N      occurrences in training that a type needs (default 1)
  --train-lines N    take the first N lines of training alone
  --skip-empty       leave out empty lines
  --help             this text

DIR then holds bin/ (for fairseq-train), text/ and corpus.json (settings, checksums, counts).
The environment variable PYTHON names the interpreter (default python3).
TEXT
}

prepare_words brown https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/brown.zip "$@"
