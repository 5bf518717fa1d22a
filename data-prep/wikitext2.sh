#!/usr/bin/env bash
# WikiText-2 (Merity et al. 2017), raw, types that training has three times.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare wikitext2 --min-count 3 "$@"
