#!/usr/bin/env bash
# IWSLT 2014, Spanish to English by documents (Miculicich et al. 2018; Peng 2022, appendix B.1.2).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare iwslt14-documents --vocabulary 30000 "$@"
