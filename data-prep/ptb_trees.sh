#!/usr/bin/env bash
# Parsed text for language modeling with span attention: the Penn Treebank, nltk's sample of it, or parses of any text.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/ptb_trees.sh --from PATH --out DIR [options]

Prepares text, the constituents that end at each of its words, and gold trees, from bracketed trees.  Of the Wall Street
Journal part of the Penn Treebank 3, sections 00-20 train, 21-22 validate and 23-24 test; traces and punctuation are
dropped, words lowercased, numbers become N, and 10,000 types stay, as in the text of Mikolov et al. (2010).

The treebank is licensed by the Linguistic Data Consortium (LDC99T42), so nothing is downloaded: name the folder
parsed/mrg/wsj (or combined/wsj) of your copy with --from.  nltk's sample of it, treebank.zip, takes the same way.
Parses of other text (WikiText-2, say) are train.mrg, valid.mrg and test.mrg, one tree a sentence, by whatever parser.

  --out DIR            folder to make; it appears when all is done
  --from PATH          folder with wsj_SSNN.mrg files at any depth, or a .zip archive of them; for parses their folder
  --corpus NAME        ptb, treebank-sample or parses (default ptb)
  --vocabulary N       most frequent types kept, special symbols counted (default 10000; of parses, those that training
                       has three times)
  --max-span N         words of the longest gold span (default 63, the most)
  --leave-out-longer   leave out gold spans that are longer, which otherwise are an error
  --help               this text

DIR then holds bin/ (for the task span_language_modeling), trees/ (for seqstruct parse), text/ and corpus.json.
The environment variable PYTHON names the interpreter (default python3 or .venv's).
TEXT
}

out='' from='' corpus=ptb options=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --leave-out-longer) options+=("$1"); shift; continue ;;
    --out | --from | --corpus | --vocabulary | --max-span) [ $# -gt 1 ] || fail "$1 needs a value" ;;
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
[ -n "$from" ] || fail "the trees are licensed and are not downloaded: --from PATH is needed (see --help)"
[ -e "$from" ] || fail "$from: no such file or folder"
run_python -m seqstruct.data.parsed_text "$corpus" --from "$from" --out "$out" \
  ${options[@]+"${options[@]}"}
