#!/usr/bin/env bash
# SNLI (Bowman et al. 2015) with GloVe (Pennington et al. 2014), or RTE 1 to 3 by --corpus rte.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
prepare snli "$@"
