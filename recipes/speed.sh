#!/usr/bin/env bash
# Every benchmark, each run twice, on a machine that does nothing else; recipes/SPEED.md holds what they print.
#   recipes/speed.sh [NAME ...]     these of the names below; the others keep what they have (default: all)
# A name alone is what a user gets; NAME-pytorch has neither compiled kernels nor oneDNN's linear layers.
#   THREADS (2), TIMES (2)          those of torch, and the runs of each
#   PEERS                           folders with packages of others that are not installed, with spaces between them
#   OPTIONS                         further ones of every command; with OPTIONS="--repeats 1 --lengths 8", TIMES=1 and
#   FILE (recipes/SPEED.md)         a file elsewhere, a trial of a few minutes
# `make readme` then fills the tables of README.md and docs/speed.md, by `python -m seqstruct.benchmarks.comparisons`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
declare -A benchmarks=(
    [inference]="inference --sections peers" [distributions]="distributions --repeats 5" [parsing]=parsing
    [rational]="rational --lengths 35" [attention]="attention --repeats 3" [encode]=encode
    [decode]="decode --sections step unconditional --lengths 32 256 2048 --repeats 5"
    [translation]="translation --repeats 2"
    [stack-layers]="stack --sections layers steps --repeats 5" [stack-decoding]="stack --sections decoding"
)
names=(inference distributions parsing rational attention encode decode translation stack-layers stack-decoding
       {inference,rational,attention,stack-layers}-pytorch)
file="${FILE:-recipes/SPEED.md}" fence=$(printf "\140%.0s" 1 2 3)
if [[ "${1:-}" == --help || "${1:-}" == -h ]]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    echo "names: ${names[*]}"
    exit
fi
for name in "${@:-${names[@]}}"; do
    [[ -n "${benchmarks[${name%-pytorch}]:-}" ]] || { echo "speed.sh: no benchmark $name: ${names[*]}" >&2; exit 1; }
done
scratch="$(mktemp)"
trap 'rm -f "$scratch"' EXIT
unset SEQSTRUCT_COMPILED SEQSTRUCT_LINEAR
touch "$file"
failed=()
for name in "${@:-${names[@]}}"; do
    read -ra words <<<"bench ${benchmarks[${name%-pytorch}]} --threads ${THREADS:-2} ${OPTIONS:-}"
    settings=()
    [[ "$name" != *-pytorch ]] || settings=(SEQSTRUCT_COMPILED=0 SEQSTRUCT_LINEAR=torch)
    shown="${settings[*]:+${settings[*]} }seqstruct ${words[*]}"
    echo "$shown"
    printf '\n## %s\n\n    %s\n\n' "$name" "$shown" >"$scratch"
    for ((run = 1; run <= ${TIMES:-2}; run++)); do
        # shellcheck disable=SC2086
        if ! printed="$(env "${settings[@]}" python -m seqstruct "${words[@]}" ${PEERS:+--peer $PEERS})"; then
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
