#!/usr/bin/env bash
# Any parallel text, from two aligned files for each part to subwords and a folder for fairseq.
# --help lists further options; nothing is downloaded.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare parallel "$@"
