#!/usr/bin/env bash
# Any parallel text, from two aligned files for each part to subwords and a folder for fairseq.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare parallel "$@"
