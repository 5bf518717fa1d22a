#!/usr/bin/env bash
# Phrase pairs of a Moses phrase table, to train a model that scores them (Cho et al. 2014).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare phrases "$@"
