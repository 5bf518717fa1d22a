#!/usr/bin/env bash
# Pairs of papers byte by byte (Radev et al. 2009; Tay et al. 2021; Peng 2022, section 4.4.3).
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/aan.sh --from DIR --out DIR [options]

Prepares pairs of papers of the ACL Anthology Network, up to 4,000 bytes each: does one cite the other?  The splits are
those of the Long Range Arena, which publishes neither checksums nor numbers of pairs; the numbers found are printed.

Nothing is downloaded, for the texts come in the arena's release of 7.7 GB alone: get lra_release.gz as
https://github.com/google-research/long-range-arena says, unpack it (tar -xzf lra_release.gz) and name the folder
lra_release/tsv_data with --from.

TEXT
  raw_options "new_aan_pairs.{train,eval,test}.tsv at any depth"
  cat <<'TEXT'
  --max-length N     bytes of a text; what is longer is cut off (default 4000)
  --help             this text

SPLIT.second.txt has the second text of each line of SPLIT.txt.
DIR then holds {train,valid,test}.txt (a label and the bytes of a text a line), dict.txt and meta.json, for fairseq's
--task text_classification.  The environment variable PYTHON names the interpreter (default python3 or .venv's).
TEXT
}

prepare_corpus lra aan "$@"
