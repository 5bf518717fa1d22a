#!/usr/bin/env bash
# Brown and SST, in place of RoBERTa's text and GLUE (Peng 2022, section 5.5.3).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare masked-lm "$@"
