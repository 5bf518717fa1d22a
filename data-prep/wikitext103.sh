#!/usr/bin/env bash
# WikiText-103 (Merity et al. 2017; Peng 2022, sections 4.4.1 and 5.5.1), ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/wikitext103.sh --out DIR [options]

Prepares WikiText-103 at the level of words, with rare words as <unk>: 1,801,350, 3,760 and 4,358 lines (paragraphs,
headings and empty lines), 101,425,671, 213,886 and 241,211 words, some 268,000 types.  Without --from it
downloads 190 MB from wikitext.smerity.com, or from where the text was first published; it is under CC BY-SA.  The
checksum and the numbers of lines and words are verified.  For adaptive input and softmax, give fairseq-train the
cut-offs 20000,60000.

TEXT
  raw_options "wiki.{train,valid,test}.tokens or wikitext-103-v1.zip"
  word_options 0 1
}

prepare_corpus corpora wikitext103 "$@"
