#!/usr/bin/env bash
# enwik8 byte by byte, 90, 5 and 5 million bytes (Kitaev et al. 2020, section 5).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare enwik8 "$@"
