#!/usr/bin/env bash
# WAT's ASPEC-JE (Nakazawa et al. 2016), Japanese to English as in Kim et al. (2017, section 4.2).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare aspec "$@"
