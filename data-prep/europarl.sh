#!/usr/bin/env bash
# German-English of Stack Attention, section 8: Europarl v7, newstest2016 and newstest2017, ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
corpus=https://www.statmt.org/europarl/v7/de-en.tgz
news=https://data.statmt.org
sums="wmt16:3d809cd0c2c86adb2c67034d15c4e446 wmt17:86a1724c276004aa25455ae2a04cef26"
md5='import hashlib, sys; print(hashlib.md5(open(sys.argv[1], "rb").read(), usedforsecurity=False).hexdigest())'

usage() {
  cat <<'TEXT'
Usage: data-prep/europarl.sh --out DIR [options]

Draws 100,000 pairs of at most 150 characters a side out of Europarl v7 (Koehn 2005) to train on; validates on
newstest2016 and tests on newstest2017 under the same limit; NFKC; SentencePiece byte-pair encoding of both sides
together, 32,000 types, those used fewer than 50 times taken back.  Without --from it downloads about 190 MB of Europarl
(no fee, sources to be named) and the WMT test sets, whose MD5 sums are verified.  Europarl publishes no checksum.

  --out DIR          folder to make; it appears when all is done
  --from DIR         folder that already holds europarl-v7.de-en.{de,en}, plain or .gz, and newstest2016 and
                     newstest2017 as NAME.{de,en} or NAME-deen-{src.de,ref.en}.sgm at any depth
  --pairs N          training pairs drawn (default 100000)
  --vocabulary N     subword types before rare ones are taken back (default 32000)
  --min-frequency N  uses in training that a subword needs (default 50)
  --seed N           of the draw (default 1)
  --help             this text

DIR then holds bin/0, bin/1 (for fairseq-train as bin/0:bin/1, one validation each), raw/ (references for seqstruct
score), text/, sentencepiece.model and corpus.json.  The environment variable PYTHON names the interpreter (default
python3).
TEXT
}

out='' from='' options=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --out | --from | --pairs | --vocabulary | --min-frequency | --seed) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) fail "unknown option $1 (see --help)" ;;
  esac
  case $1 in
    --out) out=$2 ;;
    --from) from=$2 ;;
    *) options+=("$1" "$2") ;;
  esac
  shift 2
done
[ -n "$out" ] || fail "--out DIR is needed (see --help)"
[ -z "$from" ] || [ -d "$from" ] || fail "$from is not a folder"

if [ -z "$from" ]; then
  from=$(mktemp -d)
  trap 'rm -rf "$from"' EXIT
  download "$corpus" "$from/de-en.tgz"
  tar -xzf "$from/de-en.tgz" -C "$from" europarl-v7.de-en.de europarl-v7.de-en.en 2>/dev/null ||
    fail "de-en.tgz is truncated or altered"
  for entry in $sums; do
    year=${entry%%:*}
    download "$news/$year/translation-task/test.tgz" "$from/$year.tgz"
    [ "$("$python" -c "$md5" "$from/$year.tgz")" = "${entry#*:}" ] || fail "$year.tgz is truncated or altered"
    mkdir "$from/$year"
    tar -xzf "$from/$year.tgz" -C "$from/$year"
  done
fi
"$python" -m seqstruct.data.europarl --from "$from" --out "$out" ${options[@]+"${options[@]}"}
