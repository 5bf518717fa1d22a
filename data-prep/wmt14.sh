#!/usr/bin/env bash
# WMT 2014, English to German or French (Vaswani et al. 2017; Peng 2022, sections 4.4.2 and 5.5.2), ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/wmt14.sh --out DIR [options]

Prepares Europarl v7, Common Crawl and News Commentary v9, for French the UN corpus and 10^9 French-English too:
4,508,785 and 40,836,715 training pairs; newstest2013 validates (3,000), newstest2014 tests (3,003).  Without --from it
downloads 1.7 GB for German and 6.7 GB for French from statmt.org, or from the mirror huggingface.co/datasets/wmt.
Checksums are verified where they are published; for the others (UN and 10^9) that of the first download is recorded in
SHA256SUMS beside them and verified from then on.  The numbers of pairs are verified, up to one in a thousand.

  --pair PAIR        en-de or en-fr (default en-de)
TEXT
  raw_options "the archives, or NAME.{en,de,fr} of them, plain or .gz, at any depth"
  pair_options en bpe "32768" 250 1.5
  cat <<'TEXT'
If an address is gone: the archives are linked from https://www.statmt.org/wmt14/translation-task.html; name their
folder by --from.  Plan for 12 GB of disk for German and 80 GB for French.
TEXT
  result_of_pairs
}

take_option --pair en-de "$@"
case $taken in en-de | en-fr) ;; *) fail "expected the pair en-de or en-fr, got $taken" ;; esac
prepare_corpus translation "wmt14-$taken" ${others[@]+"${others[@]}"}
