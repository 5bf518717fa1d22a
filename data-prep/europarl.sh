#!/usr/bin/env bash
# German-English of Stack Attention, section 8: Europarl v7, newstest2016 and newstest2017, ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/europarl.sh --out DIR [options]

Draws 100,000 pairs of at most 150 characters a side out of Europarl v7 (Koehn 2005) to train on; validates on
newstest2016 and tests on newstest2017 under the same limit; NFKC; SentencePiece byte-pair encoding of both sides
together, 32,000 types, those used fewer than 50 times taken back.  Without --from it downloads about 190 MB of Europarl
(no fee, sources to be named) and the WMT test sets, whose MD5 sums are verified.  Europarl publishes no checksum: that
of the first download is recorded in SHA256SUMS beside it and verified from then on.

  --out DIR          folder to make; it appears when all is done
  --from DIR         folder that holds europarl-v7.de-en.{de,en}, plain or .gz, and newstest2016 and newstest2017 as
                     NAME.{de,en} or NAME-deen-{src.de,ref.en}.sgm, at any depth or in archives; nothing is downloaded
  --downloads DIR    where downloads are kept; a broken one goes on from there at the next call (default OUT.downloads)
  --pairs N          training pairs drawn (default 100000)
  --vocabulary N     subword types before rare ones are taken back (default 32000)
  --min-frequency N  uses in training that a subword needs (default 50)
  --seed N           of the draw (default 1)
  --help             this text

DIR then holds bin/0, bin/1 (for fairseq-train as bin/0:bin/1, one validation each), raw/ (references for seqstruct
score), text/, sentencepiece.model and corpus.json.  The environment variable PYTHON names the interpreter (default
python3 or .venv's).
TEXT
}

demand_out "$@"
run_python -m seqstruct.data.europarl "$@"
