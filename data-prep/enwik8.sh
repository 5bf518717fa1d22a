#!/usr/bin/env bash
# enwik8 byte by byte, 90, 5 and 5 million bytes (Kitaev et al. 2020, section 5), ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/enwik8.sh --out DIR [options]

Prepares the first 100,000,000 bytes of Wikipedia's XML of 2006: 90 million to train, 5 to validate and 5 to test.
Without --from it downloads 36 MB from mattmahoney.net, or from data.deepai.org.  Checksums of the archive and of the
text are verified.

TEXT
  raw_options "enwik8 or enwik8.zip"
  cat <<'TEXT'
  --help             this text

If the address is gone: the text is described at http://mattmahoney.net/dc/textdata.html; name its folder by --from.
DIR then holds bin/ (train, valid, test), for fairseq-train --task language_modeling --sample-break-mode none or --task
stream_language_modeling, and corpus.json (counts, checksums).  Losses of base 2 are bits per byte.  The
environment variable PYTHON names the interpreter (default python3 or .venv's).
TEXT
}

prepare_corpus byte_streams enwik8 "$@"
