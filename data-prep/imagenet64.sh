#!/usr/bin/env bash
# Downsampled ImageNet, 64 x 64, byte by byte (van den Oord et al. 2016; Kitaev et al. 2020).
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare imagenet64 "$@"
