#!/usr/bin/env bash
# IWSLT 2015, English to Vietnamese (Luong and Manning 2015).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare iwslt15 --subwords bpe --vocabulary 10000 "$@"
