#!/usr/bin/env bash
# IWSLT 2015, English to Vietnamese (Luong and Manning 2015), ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/iwslt15.sh --out DIR [options]

Prepares talks of TED: 133,317 training pairs, tst2012 (1,553) to validate and tst2013 (1,268) to test, tokenised as
published.  Without --from it downloads 32 MB from nlp.stanford.edu.  Checksums and numbers of pairs are verified.

TEXT
  raw_options "{train,tst2012,tst2013}.{en,vi}, plain or .gz"
  pair_options en bpe "10000" 1000 1000
  cat <<'TEXT'
If the address is gone: the files are the IWSLT'15 English-Vietnamese data of https://nlp.stanford.edu/projects/nmt/;
name their folder by --from.
TEXT
  result_of_pairs
}

prepare_corpus translation iwslt15-en-vi "$@"
