#!/usr/bin/env bash
# One task of bAbI v1.2 (Weston et al. 2015), English, 1,000 questions; --task N says which.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare babi "$@"
