#!/usr/bin/env bash
# Every benchmark, each run twice, on a machine that does nothing else; recipes/SPEED.md holds what they print.
#   recipes/speed.sh [NAME ...]     these of the names below; the others keep what they have (default: all)
# THREADS (2) and TIMES (2) are those of torch and the runs of each.  `python -m seqstruct.benchmarks.comparisons
# recipes/SPEED.md` prints the table of docs/speed.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
declare -A benchmarks=(
    [stack-layers]="stack --sections layers steps"
    [stack-decoding]="stack --sections decoding"
    [stack-growth]="stack --sections growth --repeats 3"
    [inference]=inference [rational]=rational [parsing]=parsing [attention]=attention
    [decode]="decode --sections step unconditional --lengths 32 256 2048"
    [encode]=encode [translation]=translation
)
names=(stack-layers stack-decoding stack-growth inference rational parsing attention decode encode translation
       {stack-layers,stack-decoding,attention,decode}-compiled)
file=recipes/SPEED.md fence=$(printf "\140%.0s" 1 2 3)
if [[ "${1:-}" == --help || "${1:-}" == -h ]]; then
    sed -n '2,5s/^# \{0,1\}//p' "$0"
    echo "names: ${names[*]}"
    exit
fi
for name in "${@:-${names[@]}}"; do
    [[ -n "${benchmarks[${name%-compiled}]:-}" ]] || { echo "speed.sh: no benchmark $name: ${names[*]}" >&2; exit 1; }
done
scratch="$(mktemp)"
trap 'rm -f "$scratch"' EXIT
failed=()
for name in "${@:-${names[@]}}"; do
    read -ra words <<<"bench ${benchmarks[${name%-compiled}]} --threads ${THREADS:-2}"
    compiled=0
    [[ "$name" != *-compiled ]] || compiled=1
    shown="SEQSTRUCT_COMPILED=$compiled seqstruct ${words[*]}"
    echo "$shown"
    printf '\n## %s\n\n    %s\n\n' "$name" "$shown" >"$scratch"
    for ((run = 1; run <= ${TIMES:-2}; run++)); do
        if ! printed="$(SEQSTRUCT_COMPILED=$compiled python -m seqstruct "${words[@]}")"; then
            failed+=("$name")
            continue 2
        fi
        printf "%s\n" "$fence" "$printed" "$fence" >>"$scratch"
    done
    # the section goes, and comes again at the end
    awk -v name="## $name" '/^## /{ skip = $0 == name } !skip' "$file" | cat -s - "$scratch" >"$file.new"
    mv "$file.new" "$file"
done
[[ ${#failed[@]} -eq 0 ]] || { echo "speed.sh: failed: ${failed[*]}" >&2; exit 1; }
