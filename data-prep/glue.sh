#!/usr/bin/env bash
# A task of GLUE (Wang et al. 2019; Peng 2022, section 5.5.3) in RoBERTa's encoding; --task NAME says which.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare glue "$@"
