#!/usr/bin/env bash
# WMT 2016, English to Romanian (Sennrich et al. 2016; Gehring et al. 2017).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare wmt16 --subwords bpe --vocabulary 40000 --max-length 250 --max-ratio 1.5 "$@"
