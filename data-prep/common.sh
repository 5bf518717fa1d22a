# What the scripts of this folder share: each sources it from its own place, so that it may be called from anywhere.
# shellcheck shell=bash
# shellcheck disable=SC2034  # what is set here is used by who sources this

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=''
probe='import sys
from importlib.util import find_spec
needed = "numpy", "torch", "fairseq", "sacremoses", "subword_nmt", "sentencepiece"
lacking = [name for name in needed if find_spec(name) is None]
sys.exit("lacks " + ", ".join(lacking) if lacking else 0)'
export PYTHONPATH="$here/..${PYTHONPATH:+:$PYTHONPATH}"

# fail WORDS: one sentence on standard error, and the end.
fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# find_python: into $python PYTHON, or else the first of python3 and this clone's .venv that has what the scripts need.
find_python() {
  local candidate answer said='' candidates=("${PYTHON:-python3}")
  [ -n "${PYTHON:-}" ] || candidates+=("${here%/*}/.venv/bin/python")
  for candidate in "${candidates[@]}"; do
    if ! command -v "$candidate" >/dev/null; then
      answer='is not there'
    elif answer=$("$candidate" -c "$probe" 2>&1); then
      python=$candidate
      return
    fi
    said="$said${said:+; }$candidate $(tail -n 1 <<<"$answer")"
  done
  fail "no Python with what is needed ($said): run make venv in ${here%/*}, or activate the environment that has" \
    "seqstruct, or name its interpreter in the environment variable PYTHON"
}

# run_python WORDS: that interpreter with these arguments.
run_python() {
  [ -n "$python" ] || find_python
  "$python" "$@"
}

# download URL FILE: one file, if it is not there; a broken download goes on from FILE.part, and checksums are recorded.
download() {
  run_python -m seqstruct.data.downloads "$1" "$2"
}

# refuse_taken DIR: anything of that name but an empty folder, or a link to one, is refused.
refuse_taken() {
  [ ! -e "$1" ] || { [ -d "$1" ] && [ -z "$(ls -A "$1")" ]; } ||
    fail "$1 is there already: remove it or name another folder"
}

# unpack_into DIR: it becomes $downloads, and $unpacked an empty folder in it, which goes when the script ends.
unpack_into() {
  downloads=$1 unpacked=$1/unpacked
  rm -rf "$unpacked"
  mkdir -p "$unpacked"
  trap 'rm -rf "$unpacked"' EXIT
}

# demand_out OPTIONS: --help ends here, and so does a call without --out.
demand_out() {
  local out='' word
  for word in "$@"; do
    case $word in
      --help | -h) usage; exit 0 ;;
      --out | --out=*) out=yes ;;
    esac
  done
  [ -n "$out" ] || fail "--out DIR is needed (see --help)"
}

# prepare_corpus MODULE CORPUS OPTIONS: the module does all the rest.
prepare_corpus() {
  local module=$1 corpus=$2
  shift 2
  demand_out "$@"
  run_python -m "seqstruct.data.$module" "$corpus" "$@"
}

# take_option NAME DEFAULT OPTIONS: an option of the script itself into $taken, all others into the array $others.
take_option() {
  local name=$1
  taken=$2 others=()
  shift 2
  while [ $# -gt 0 ]; do
    case $1 in
      "$name") [ $# -gt 1 ] || fail "$name needs a value"; taken=$2; shift ;;
      "$name"=*) taken=${1#*=} ;;
      *) others+=("$1") ;;
    esac
    shift
  done
}

# raw_options FILES: the part of --help on where the raw files come from.
raw_options() {
  cat <<TEXT
  --out DIR          folder to make; it appears when all is done
  --from DIR         folder that holds $1;
                     nothing is downloaded then
  --downloads DIR    where downloads are kept; a broken one goes on from there at the next call (default OUT.downloads)
  --unchecked        take the files as they are: neither checksums nor numbers are verified
TEXT
}

# pair_options SOURCE KIND VOCABULARY LENGTH RATIO: the part on how pairs are cut, with the defaults.
pair_options() {
  cat <<TEXT
  --src LANGUAGE     source; the other language is the target (default $1)
  --subwords KIND    bpe, words or mixed (all of Moses tokens), sentencepiece, sentencepiece-bpe or characters;
                     KIND,KIND: of source and target (default $2)
  --vocabulary N     subword types of both languages together; N,N: of source and target (default $3)
  --max-length N     subwords in a sentence (default $4); longer training pairs are dropped
  --max-ratio R      longer to shorter side; training pairs above it are dropped (default $5)
  --workers N        processes that binarise (default 1)
  --help             this text

TEXT
}

# result_of_pairs: the part on what is made.
result_of_pairs() {
  cat <<'TEXT'
DIR then holds bin/ (for fairseq-train), raw/ (references for seqstruct score), text/ (subwords), the subword models and
corpus.json (settings, checksums, counts).  The environment variable PYTHON names the interpreter (default python3 or
.venv's).
TEXT
}

# word_options VOCABULARY COUNT: the part on how a text of words is cut down, with the defaults, and on what is made.
word_options() {
  cat <<TEXT
  --vocabulary N     most frequent types kept, special symbols counted, 0: all (default $1)
  --min-count N      occurrences in training that a type needs (default $2)
  --lowercase        lowercase words; numbers become N
  --train-lines N    take the first N lines of training alone
  --skip-empty       leave out empty lines
  --help             this text

DIR then holds bin/ (for fairseq-train), text/ and corpus.json (settings, checksums, counts).  The environment variable
PYTHON names the interpreter (default python3 or .venv's).
TEXT
}
