#!/usr/bin/env bash
# WMT 2016, English to Romanian (Sennrich et al. 2016; Gehring et al. 2017), ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/wmt16.sh --out DIR [options]

Prepares Europarl v8 and SETIMES 2, 612,422 training pairs; newsdev2016 validates and newstest2016 tests (1,999 each).
Without --from it downloads 290 MB from statmt.org and OPUS, or from the mirror huggingface.co/datasets/wmt.  Checksums
of WMT's archives are verified; OPUS publishes none, so that of the first download is recorded in SHA256SUMS beside it
and verified from then on.  The numbers of pairs are verified, up to one in a thousand.

TEXT
  raw_options "the archives, or NAME.{en,ro} of them, plain or .gz, at any depth"
  pair_options en bpe "40000" 250 1.5
  cat <<'TEXT'
The back-translated news of the papers are not part of it.  If an address is gone: the archives are linked from
https://www.statmt.org/wmt16/translation-task.html; name their folder by --from.
TEXT
  result_of_pairs
}

prepare_corpus translation wmt16-en-ro "$@"
