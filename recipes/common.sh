# shellcheck shell=bash disable=SC2154,SC2034
# The last line of every recipe sources this file, and its cells run under `set -euo pipefail`.  A user's call goes to
# `seqstruct cell`, which knows all options; it calls the recipe again for the rows of a scale, and for the commands of
# each cell.  Nothing runs while they are listed.
#
# A recipe sets
#   paper table licence            as in paper.json, and of the data
#   rows smoke_rows paper_rows     arrays of names; the latter two where a scale has other rows
#   baselines smoke_baselines      arrays of rows that the data alone decide (see `seqstruct baseline --help`)
#   seeds_small seeds_paper        how many there are, 1 by default
#   family                         of models; continuous integration runs one recipe of each
# and the function `cell`, which has $row $seed $scale $out (the cell's folder) $runs (that of all data and cells), sets
#   dataset minutes disk download  a line about the data; minutes of one thread; MiB
#   threads                        of the commands; by default 1, at scale paper what the machine has
#   kernels                        0 or 1 where numbers hang on compiled kernels; by default as the environment has it
#   table also                     where a scale's data are others; tables beside it that no request below names
# and calls, in order,
#   raw NAME                 sets the array `from`: --from DIR, the corpus of that name (`raw .`: whatever there is); at
#                            scale smoke --made-up
#   prepare NAME COMMAND     sets $data, a folder that COMMAND --out $data makes unless it is there
#   log_uniform NAME LOW HIGH       prints a number that the run draws from its seed; whole: a whole one, uniform
#   shards FOLDER            prints the word for all shards of prepared data, read when the command runs
#   shared NAME COMMAND      a training or a search that several cells take: sets $shared, the folder that it writes
#   fairseq-... seqstruct python ...     steps, run from the root of the repository; ${cpu[@]} is --cpu but at paper
#   translate, prepare_strings, validate_strings, baseline     commands that several recipes have, see below
#   score_translation, record_translation FILE.json ...   the score of $out/generate-test.txt, and the record of a translation
#   record METRIC[UNIT]=FILE:KEY ... FILE.json ...       (see `seqstruct record --help`)

set -euo pipefail
if [[ -z "${SEQSTRUCT_RECIPE:-}" ]]; then
    root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
    python="$(command -v python || command -v python3)"
    [[ -x "$root/.venv/bin/python" && -z "${VIRTUAL_ENV:-}" ]] && python="$root/.venv/bin/python"
    "$python" -c "import seqstruct" 2>/dev/null || export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
    exec "$python" -m seqstruct cell "$0" "$@"
fi

_emit() { local kind="$1"; shift; printf '%s\0' "$kind" "$#" "$@"; }

# a row's name as the name of a file in configs/: lower case, all else than letters and digits "_"
slug() {
    local LC_ALL=C name="${1,,}"
    name="${name//[^a-z0-9]/_}"
    while [[ "$name" == *__* ]]; do name="${name//__/_}"; done
    name="${name#_}"
    printf '%s\n' "${name%_}"
}

# numbers that a run draws for itself, from its seed and a name, between two ends
_uniform() { local hash; hash="$(sha256sum <<<"$1 $seed")"; awk "BEGIN { printf \"%.17g\", $((16#${hash:0:12})) / 2 ^ 48 }"; }
log_uniform() { awk -v u="$(_uniform "$1")" -v a="$2" -v b="$3" 'BEGIN { printf "%.6g", a * exp(log(b / a) * u) }'; }
whole() { awk -v u="$(_uniform "$1")" -v a="$2" -v b="$3" 'BEGIN { print a + int((b - a + 1) * u) }'; }

# the product of two numbers, for estimates
times() { awk "BEGIN { print $1 * $2 }"; }

shards() { echo "\$(python -m seqstruct.data.shards $1)"; }

raw() {
    from=()
    if [[ "$scale" == smoke ]]; then from=(--made-up)
    elif [[ -n "${given:-}" ]]; then from=(--from "$given")
    elif [[ -d "${SEQSTRUCT_REFERENCE:-/nowhere}/data/$1" ]]; then from=(--from "$SEQSTRUCT_REFERENCE/data/$1")
    fi
}

prepare() {
    local name="$1" IFS=$'\x1f' hash; shift
    hash="$(cksum <<<"$*")"
    data="$runs/data/$name-${hash%% *}"
    _emit prepare "$data" "$@" --out "$data"
}

# a training or a search that several cells take: sets $shared, its folder; a word "\$(cat $shared/chosen)" is read later
shared() {
    shared="$runs/shared/$1"; shift
    case "$1" in
        fairseq-hydra-train) _emit shared "$shared" "$@" checkpoint.save_dir="$shared" "${limit[@]}" ;;
        seqstruct) _emit shared "$shared" "$@" ${max_minutes:+--max-minutes "$max_minutes"} --out "$shared" ;;
        *) _emit shared "$shared" "$@" --out "$shared" ;;
    esac
}

limit=()
[[ -z "${max_minutes:-}" ]] || limit=("optimization.stop_time_hours=$(times "$max_minutes" 1/60)")
fairseq-hydra-train() { _emit train "${log:-train.log}" fairseq-hydra-train "$@" "${limit[@]}"; }
fairseq-generate() { _emit log "${log:-decode.log}" fairseq-generate "$@"; }
fairseq-validate() { _emit log "${log:-validate.log}" fairseq-validate "$@"; }
fairseq-eval-lm() { _emit log "${log:-eval.log}" fairseq-eval-lm "$@"; }
fairseq-preprocess() { _emit step fairseq-preprocess "$@"; }
seqstruct() { _emit step seqstruct "$@"; }
python() { _emit step python "$@"; }

record() { _emit record "$@"; }

# the numbers of a row of `baselines`, for the array `beside` of tables too: NAME as `seqstruct baseline` has it, then its
# options; its minutes are no training's
baseline() {
    case "$scale" in small) minutes=1 ;; paper) minutes=60 ;; esac
    seqstruct baseline "$1" "$data" "${@:2}" --out "$out/baseline.json"
    record baseline.json "${beside[@]/%/:baseline.json}"
}

# NAME LANGUAGE: strings to train on, to validate on and of each test length, as many as $counts says, of $lengths
prepare_strings() {
    prepare "$1" seqstruct prepare cfl "$2" --train "${counts[0]}" --valid "${counts[1]}" \
        --test-per-length "${counts[2]}" --lengths "${lengths[0]}" --test-lengths "${lengths[1]}" --seed "$seed"
}

# SUBSETS: the cross-entropy of strings above the true distribution, by length, in validate.log
validate_strings() {
    fairseq-validate "$data" --user-dir seqstruct --task cfl_language_modeling --criterion cfl_cross_entropy \
        --report-by-length --path "$out/checkpoints/checkpoint_best.pt" --valid-subset "$1" --batch-size 100 \
        --log-format json "${cpu[@]}"
}

# SUBSET FOLDER CHECKPOINT OPTION ...: the subset of a prepared pair of languages, translated
translate() {
    fairseq-generate "$data/bin" --user-dir seqstruct --path "$3" --gen-subset "$1" "${@:4}" --max-len-a 1.5 \
        --max-len-b 10 --max-tokens 4000 --results-path "$2" "${cpu[@]}"
}

# $out/generate-test.txt by the corpus's own references; then that, the perplexity, size and speeds, and what is named
score_translation() {
    seqstruct score --from-generate "$out/generate-test.txt" --data "$data" --metrics tokenized_bleu bleu chrf \
        --record "$out/score.json"
}
record_translation() {
    record "$1" "validation_perplexity[perplexity]=train.log:valid_ppl@best" \
        "parameters[parameters]=train.log:parameters" "training_tokens_per_second[tokens/s]=train.log:wps@median" \
        "decoding_sentences_per_second[sentences/s]=decode.log:sentences_per_second" "${@:2}"
}

cpu=()
[[ "${scale:-}" == paper ]] || cpu=(--cpu --num-workers 0)
if [[ "$SEQSTRUCT_RECIPE" == rows ]]; then
    for kind in {smoke_,paper_,}{rows,baselines}; do
        declare -n _array="$kind"
        for row in "${_array[@]+"${_array[@]}"}"; do _emit "$kind" "$row"; done
    done
    for name in paper table licence family seeds_small seeds_paper; do _emit "$name" "${!name:-}"; done
else
    cell
    for name in table also dataset minutes disk download threads kernels; do _emit "$name" "${!name:-}"; done
fi
