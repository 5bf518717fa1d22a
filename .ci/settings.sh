#!/usr/bin/env bash
# The tests that compute, under each setting of threads and kernels that changes how sums are rounded.
set -euo pipefail

if [[ "${1:-}" == "--help" || "${1:-}" == "-h" ]]; then
    echo "Usage: .ci/settings.sh [NAME=VALUE ...] [WORDS FOR PYTEST ...]    run the tests once for each setting; default: all"
    echo "settings of OMP_NUM_THREADS, ATEN_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA, MKL_CBWR and SEQSTRUCT_LINEAR, singly varied,"
    echo "and all tests but those of data preparation and texts; -m training takes those alone that train, and prints by how"
    echo "much they pass."
    echo "PYTHON names the interpreter (default: .venv's), WORKERS the processes (2)."
    exit 0
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
settings=() words=()
for word in "$@"; do
    if [[ "$word" == [A-Z]*=* ]]; then settings+=("$word"); else words+=("$word"); fi
done
[[ ${#settings[@]} -gt 0 ]] || settings=(
    OMP_NUM_THREADS={1,2} ATEN_CPU_CAPABILITY={default,avx2,avx512} ONEDNN_MAX_CPU_ISA={AVX2,AVX512_CORE}
    MKL_CBWR={COMPATIBLE,AVX2,AVX512} SEQSTRUCT_LINEAR={auto,onednn}
)
[[ ${#words[@]} -gt 0 ]] || words=(tests --ignore tests/data --ignore tests/test_readme.py)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
for setting in "${settings[@]}"; do
    if env -u ATEN_CPU_CAPABILITY -u ONEDNN_MAX_CPU_ISA -u MKL_CBWR -u SEQSTRUCT_LINEAR OMP_NUM_THREADS=1 "$setting" \
        "${PYTHON:-.venv/bin/python}" -m pytest -q -m "not slow" -n "${WORKERS:-2}" "${words[@]}" >"$log" 2>&1; then
        grep '^margin ' "$log" || true
        echo "$setting: $(tail -n 1 "$log")"
    else
        failed=1
        echo "$setting: FAILED"
        grep -E '^(FAILED|ERROR) |^[0-9]+ (passed|failed)' "$log" || tail -n 20 "$log"
    fi
done
exit "$failed"
