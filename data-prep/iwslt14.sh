#!/usr/bin/env bash
# IWSLT 2014, German to English (Edunov et al. 2018; Peng 2022, section 4.4.2); 9,000 and 7,000 subwords.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare iwslt14 --subwords bpe "$@"
