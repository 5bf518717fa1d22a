#!/usr/bin/env bash
# WMT 2014, English to German or, by --pair en-fr, French (Vaswani et al. 2017; Peng 2022, sections 4.4.2 and 5.5.2).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare wmt14 --subwords bpe --vocabulary 32768 --max-length 250 --max-ratio 1.5 "$@"
