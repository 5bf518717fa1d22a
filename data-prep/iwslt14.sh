#!/usr/bin/env bash
# IWSLT 2014, German to English (Edunov et al. 2018; Peng 2022, section 4.4.2), ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/iwslt14.sh --out DIR [options]

Prepares talks of TED: 160,239 training and 7,283 validation pairs (every 23rd) after cleaning, 6,750 test pairs
(dev2010, dev2012, tst2010 to tst2012), in lower case.  Without --from it downloads some 20 MB from fairseq's data, or
from wit3.fbk.eu.  No checksum is published: that of the first download is recorded in SHA256SUMS beside it and verified
from then on.  The numbers of pairs are verified, up to one in a hundred.

  --recipe NAME      thesis: byte-pair encoding of each language, 9,000 and 7,000 types; or fairseq: of both together,
                     10,000 types (default thesis); results of one are not to be compared with those of the other
TEXT
  raw_options "de-en.tgz, or its files at any depth"
  pair_options de bpe "9000,7000 or 10000" 1000 1000
  cat <<'TEXT'
If the addresses are gone: get 2014-01.tgz from https://wit3.fbk.eu/2014-01 by a browser, take texts/de/en/de-en.tgz out
of it and name its folder by --from.
TEXT
  result_of_pairs
}

take_option --recipe thesis "$@"
case $taken in
  thesis) corpus=iwslt14-de-en ;;
  fairseq) corpus=iwslt14-de-en-joint ;;
  *) fail "expected the recipe thesis or fairseq, got $taken" ;;
esac
prepare_corpus translation "$corpus" ${others[@]+"${others[@]}"}
