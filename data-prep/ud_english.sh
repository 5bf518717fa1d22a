#!/usr/bin/env bash
# Free stand-ins for the trees, graphs and classes of Peng (2022, chapter 2).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare ud-english "$@"
