#!/usr/bin/env bash
# One task of bAbI v1.2 (Weston et al. 2015), English, 1,000 questions, as a folder for the task babi_qa.
set -euo pipefail

archive=https://dl.fbaipublicfiles.com/babi/tasks_1-20_v1-2.tar.gz
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/babi.sh --task N --out DIR [options]

Prepares one bAbI task: 1,000 training questions, of which whole stories with a tenth are held out for validation, and
1,000 test questions. Without --from it downloads 12 MB from the data set's own site (licence: CC BY 3.0).
Checksums are verified.

  --task N        1 to 20
  --out DIR       folder to make; it appears when all is done
  --from DIR      folder that already holds qaN_NAME_train.txt and qaN_NAME_test.txt of the English 1k version
  --downloads DIR where downloads are kept; a broken one goes on from there (default OUT.downloads)
  --unchecked     take the files of --from as they are
  --split-seed N  draws the validation stories (default 1)
  --help          this text

DIR then holds train.txt, valid.txt, test.txt and vocabulary.txt. The environment variable PYTHON names the interpreter
(default python3 or .venv's).
TEXT
}

out='' from='' downloads='' task='' checksums=(--checksums "$here/babi.sha256") options=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --unchecked) checksums=(); shift; continue ;;
    --out | --from | --downloads | --task | --split-seed) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) fail "unknown option $1 (see --help)" ;;
  esac
  case $1 in
    --out) out=$2 ;;
    --from) from=$2 ;;
    --downloads) downloads=$2 ;;
    --task) task=$2 ;;
    *) options+=("$1" "$2") ;;
  esac
  shift 2
done
[ -n "$out" ] || fail "--out DIR is needed (see --help)"
[ -n "$task" ] || fail "--task N is needed (see --help)"
refuse_taken "$out"
[ -z "$from" ] || [ -d "$from" ] || fail "$from is not a folder"
[ -n "$from" ] || [ ${#checksums[@]} -gt 0 ] || fail "--unchecked needs --from DIR"

if [ -z "$from" ]; then
  unpack_into "${downloads:-${out%/}.downloads}"
  download "$archive" "$downloads/babi.tar.gz"
  tar -xzf "$downloads/babi.tar.gz" -C "$unpacked" --strip-components=2 tasks_1-20_v1-2/en ||
    fail "${archive##*/} is truncated or altered"
  from=$unpacked
fi

run_python -m seqstruct prepare babi --from "$from" --task "$task" --out "$out" \
  ${checksums[@]+"${checksums[@]}"} ${options[@]+"${options[@]}"}
echo "$out: ready"
