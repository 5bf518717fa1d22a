#!/usr/bin/env bash
# WikiText-2 (Merity et al. 2017), raw, ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/wikitext2.sh --out DIR [options]

Prepares WikiText-2 at the level of words: 36,718, 3,760 and 4,358 lines (paragraphs, headings and empty lines),
2,051,910, 213,886 and 241,211 words.  Without --from it downloads 4.7 MB from wikitext.smerity.com, or from where the
text was first published; it is under CC BY-SA.  The checksum and the numbers of lines and words are verified.

TEXT
  raw_options "wiki.{train,valid,test}.raw or wikitext-2-raw-v1.zip"
  word_options 0 3
}

prepare_corpus corpora wikitext2 "$@"
