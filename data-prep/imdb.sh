#!/usr/bin/env bash
# Reviews of films byte by byte (Maas et al. 2011; Tay et al. 2021; Peng 2022, section 4.4.3).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare imdb --max-length 4000 "$@"
