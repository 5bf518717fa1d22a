#!/usr/bin/env bash
# The Brown corpus (Francis and Kucera 1979), a free text of the size of the Penn Treebank's.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare brown --vocabulary 10000 --lowercase "$@"
