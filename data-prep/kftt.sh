#!/usr/bin/env bash
# The Kyoto Free Translation Task (Neubig 2011), Japanese to English, as in Kudo and Richardson (2018).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare kftt "$@"
