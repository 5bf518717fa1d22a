#!/usr/bin/env bash
# German-English of Stack Attention, section 8: Europarl v7, newstest2016 and newstest2017.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare europarl "$@"
