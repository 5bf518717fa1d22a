#!/usr/bin/env bash
# Single sentences for language modeling with unknown words in classes, as Dyer et al. (2016) made them of the PTB.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/ptb_sentences.sh --from PATH --out DIR [options]

Prepares the sentences of the Wall Street Journal part of the Penn Treebank 3 from its .mrg trees: sections 02-21 to
train, 24 to validate, 23 to test.  Empty elements are dropped, case and numbers stay, and words that training has once
or never become classes such as UNK-LC-ing.

The treebank is licensed by the Linguistic Data Consortium (LDC99T42), so nothing is downloaded: name the folder
parsed/mrg/wsj (or combined/wsj) of your copy with --from.  Free stand-ins, not to be compared with numbers of the
treebank, take the same way: nltk's sample of it (treebank.zip), Brown (brown.zip) and WikiText-2 raw.

  --out DIR              folder to make; it appears when all is done
  --from PATH            folder with wsj_SSNN.mrg files at any depth, or a .zip archive of them; for brown and
                         wikitext2, a folder that holds brown.zip or wiki.{train,valid,test}.raw
  --corpus NAME          ptb, treebank-sample, brown or wikitext2 (default ptb)
  --validation-section N 24 or 22 of the treebank (default 24)
  --train-sentences N    take the first N sentences of training alone
  --unchecked            take brown.zip as it is, whatever text it holds
  --help                 this text

DIR then holds bin/0, bin/1 (for fairseq-train as bin/0:bin/1, one validation each: every 20,000 sentences), text/ and
corpus.json (counts, checksums).  The environment variable PYTHON names the interpreter (default python3 or .venv's).
TEXT
}

out='' from='' corpus=ptb options=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --unchecked) options+=("$1"); shift; continue ;;
    --out | --from | --corpus | --validation-section | --train-sentences) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) fail "unknown option $1 (see --help)" ;;
  esac
  case $1 in
    --out) out=$2 ;;
    --from) from=$2 ;;
    --corpus) corpus=$2 ;;
    *) options+=("$1" "$2") ;;
  esac
  shift 2
done
[ -n "$out" ] || fail "--out DIR is needed (see --help)"
[ -n "$from" ] || fail "nothing is downloaded: --from PATH is needed (see --help)"
[ -e "$from" ] || fail "$from: no such file or folder"
run_python -m seqstruct.data.sentences "$corpus" --from "$from" --out "$out" ${options[@]+"${options[@]}"}
