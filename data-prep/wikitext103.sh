#!/usr/bin/env bash
# WikiText-103 (Merity et al. 2017; Peng 2022, sections 4.4.1 and 5.5.1).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare wikitext103 "$@"
