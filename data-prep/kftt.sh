#!/usr/bin/env bash
# The Kyoto Free Translation Task (Neubig 2011), Japanese to English, ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/kftt.sh --out DIR [options]

Prepares the raw text of the task: 440,288 training pairs, 1,166 to validate (dev) and 1,160 to test, cut by
SentencePiece as in Kudo and Richardson (2018).  Without --from it downloads some 100 MB from phontron.com (licence:
CC BY-SA 3.0), which publishes no checksum: that of the first download is recorded in SHA256SUMS beside it and verified
from then on.  The numbers of pairs are verified, up to one in a thousand.

  --text KIND        raw, or tokenised: the words as the task cuts them (default raw)
TEXT
  raw_options "kftt-data-1.0.tar.gz, or {orig,tok}/kyoto-{train,dev,test}.{ja,en}"
  pair_options ja sentencepiece "8000" 500 1000
  cat <<'TEXT'
If the address is gone: the archive is linked from https://www.phontron.com/kftt/; name its folder by --from.
TEXT
  result_of_pairs
}

take_option --text raw "$@"
case $taken in
  raw) corpus=kftt ;;
  tokenised) corpus=kftt-tokenised ;;
  *) fail "expected the text raw or tokenised, got $taken" ;;
esac
prepare_corpus translation "$corpus" ${others[@]+"${others[@]}"}
