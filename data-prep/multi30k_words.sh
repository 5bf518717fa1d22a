#!/usr/bin/env bash
# Multi30k task 1 (Elliott et al. 2016) in words or characters, in place of ASPEC (Kim et al. 2017, section 4.2).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare multi30k-words "$@"
