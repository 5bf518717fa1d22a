#!/usr/bin/env bash
# Pairs of papers byte by byte (Radev et al. 2009; Tay et al. 2021; Peng 2022, section 4.4.3).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare aan --max-length 4000 "$@"
