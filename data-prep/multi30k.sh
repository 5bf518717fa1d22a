#!/usr/bin/env bash
# Multi30k task 1 (Elliott et al. 2016) in joint subwords.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare multi30k --subwords bpe --vocabulary 6000 "$@"
