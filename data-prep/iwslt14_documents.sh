#!/usr/bin/env bash
# IWSLT 2014, Spanish to English by documents (Miculicich et al. 2018; Peng 2022, appendix B.1.2), ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/iwslt14_documents.sh --out DIR [options]

Prepares whole talks of TED, sentence by sentence and in order; dev2010 validates, tst2010 to tst2012 test; truecased,
with byte-pair encoding of both languages together.  The thesis counts 1,421, 8 and 42 documents in its appendix, 1,713,
8 and 56 in Table 5.3; the numbers found are printed.  Without --from it tries wit3.fbk.eu, which publishes no
checksum: that of the first download is recorded in SHA256SUMS beside it and verified from then on.

TEXT
  raw_options "es-en.tgz, or its files at any depth"
  pair_options es bpe "30000" 1000 1000
  cat <<'TEXT'
If the address is gone: get 2014-01.tgz from https://wit3.fbk.eu/2014-01 by a browser, take texts/es/en/es-en.tgz out of
it and name its folder by --from.
text/SPLIT.docs has the number of sentences of each document, one a line: the first line says how many of the first
lines of text/SPLIT.es and text/SPLIT.en belong together, and so on.
TEXT
  result_of_pairs
}

prepare_corpus translation iwslt14-es-en "$@"
