#!/usr/bin/env bash
# The Penn Treebank as text with its constituents (Peng 2022, chapter 3).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare ptb-trees "$@"
