#!/usr/bin/env bash
# Single sentences with unknown words in classes, as Dyer et al. (2016) made them of the Penn Treebank.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare ptb-sentences "$@"
