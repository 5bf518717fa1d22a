#!/usr/bin/env bash
# The laws of torch.compile and torch.export that are slow: every third of them, other ones with each commit.
set -euo pipefail

if [[ "${1:-}" == "--help" || "${1:-}" == "-h" ]]; then
    echo "Usage: .ci/compiled.sh [PARTS]    hold every PARTS-th law of compiled and exported mechanisms, beginning with the"
    echo "number of commits modulo PARTS (3); 1 for all.  WORKERS names the processes (2)."
    exit 0
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
parts="${1:-3}"
laws="$(mktemp)"
trap 'rm -f "$laws"' EXIT
.venv/bin/python -m pytest -q --collect-only -p no:cacheprovider -m slow tests/attention/test_contract_compiled.py |
    grep :: | awk -v parts="$parts" -v first="$(git rev-list --count HEAD)" '(NR - first) % parts == 0' >"$laws"
OMP_NUM_THREADS=1 .venv/bin/python -m pytest -q -p no:cacheprovider -n "${WORKERS:-2}" "@$laws"
