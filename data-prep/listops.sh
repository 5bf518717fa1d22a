#!/usr/bin/env bash
# ListOps (Nangia and Bowman 2018) by its own generator (Tay et al. 2021; Peng 2022, section 4.4.3).
# --help lists further options; nothing is downloaded.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare listops --lengths 501:1999 --train 96000 --valid 2000 --test 2000 "$@"
