#!/usr/bin/env bash
# Penn Treebank as Mikolov et al. (2010) cut it down to 10,000 types.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare ptb "$@"
