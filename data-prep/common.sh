# What the scripts of this folder share: each sources it from its own place, so that it may be called from anywhere.
# shellcheck shell=bash
# shellcheck disable=SC2034  # python is used by who sources this

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
export PYTHONPATH="$here/..${PYTHONPATH:+:$PYTHONPATH}"

# fail WORDS: one sentence on standard error, and the end.
fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# download URL FILE: one file, named in the error if it cannot be had.
download() {
  echo "downloading $1" >&2
  curl --fail --silent --show-error --location --retry 3 --output "$2" "$1" || fail "$1 could not be downloaded"
}

# refuse_taken DIR: an empty folder of that name is taken away, anything else refused.
refuse_taken() {
  if [ -e "$1" ]; then
    rmdir "$1" 2>/dev/null || fail "$1 is there already: remove it or name another folder"
  fi
}

# prepare_words CORPUS URL OPTIONS: a corpus of words, downloaded unless --from is among the options; no URL: licensed.
prepare_words() {
  local corpus=$1 url=$2 given='' out='' word
  shift 2
  for word in "$@"; do
    case $word in
      --help | -h) usage; exit 0 ;;
      --from | --from=*) given=yes ;;
      --out | --out=*) out=yes ;;
    esac
  done
  [ -n "$out" ] || fail "--out DIR is needed (see --help)"
  if [ -z "$given" ]; then
    [ -n "$url" ] || fail "the text is licensed and is not downloaded: --from DIR is needed (see --help)"
    from=$(mktemp -d)
    trap 'rm -rf "$from"' EXIT
    download "$url" "$from/${url##*/}"
    set -- --from "$from" "$@"
  fi
  "$python" -m seqstruct.data.corpora "$corpus" "$@"
}
