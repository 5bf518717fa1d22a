#!/usr/bin/env bash
# Sentences with labels, split as in Peng (2022, Table 6.4); first comes sst, subj, cr or amazon.
# --help lists further options; --from DIR names raw files, --made-up makes small ones up.
set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
case ${1:-} in
  sst | subj | cr | amazon) ;;
  --help | -h) set -- sst --help ;;
  *) echo "text_classification.sh: expected sst, subj, cr or amazon first, got '${1:-}'" >&2; exit 1 ;;
esac
prepare "$@"
