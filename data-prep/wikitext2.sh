#!/usr/bin/env bash
# WikiText-2 (Merity et al. 2017), raw, ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/wikitext2.sh --out DIR [options]

Prepares WikiText-2 at the level of words: 36,718, 3,760 and 4,358 lines (paragraphs, headings and empty lines),
2,051,910, 213,886 and 241,211 words.  Without --from it downloads 4.7 MB; the text is under CC BY-SA.
The numbers of lines and words are verified.

  --out DIR          folder to make; it appears when all is done
  --from DIR         folder that holds wiki.{train,valid,test}.raw or wikitext-2-raw-v1.zip
  --unchecked        take the files as they are, whatever text they hold
  --vocabulary N     most frequent types kept, special symbols counted, 0: all (default 0)
  --min-count N      occurrences in training that a type needs (default 3)
  --lowercase        lowercase words; numbers become N
  --train-lines N    take the first N lines of training alone
  --skip-empty       leave out empty lines
  --help             this text

DIR then holds bin/ (for fairseq-train), text/ and corpus.json (settings, checksums, counts).
The environment variable PYTHON names the interpreter (default python3).
TEXT
}

prepare_words wikitext2 https://wikitext.smerity.com/wikitext-2-raw-v1.zip "$@"
