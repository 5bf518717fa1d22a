#!/usr/bin/env bash
# Semantic dependency graphs of SDP 2015 and Stanford dependencies of the Penn Treebank, as Peng (2022) splits them.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare sdp2015 "$@"
