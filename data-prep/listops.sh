#!/usr/bin/env bash
# ListOps (Nangia and Bowman 2018) by its own generator (Tay et al. 2021; Peng 2022, section 4.4.3).
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/listops.sh --out DIR [options]

Draws formulas such as [MAX 2 9 [MIN 4 7 ] 0 ] and computes their values, one digit: 96,000 to train, 2,000 to validate
and 2,000 to test, of more than 500 and fewer than 2,000 tokens, up to 10 arguments and a depth of 10.  Nothing is
downloaded.  A token is an operator with its bracket, a digit or a closing bracket.

  --out DIR          folder to make; it appears when all is done
  --lengths MIN:MAX  tokens of a formula, both bounds included (default 501:1999)
  --train N          formulas to train on (default 96000)
  --valid N          likewise (default 2000)
  --test N           likewise (default 2000)
  --max-depth N      of nesting (default 10)
  --max-args N       arguments of an operation (default 10)
  --seed N           of the draw (default 1)
  --help             this text

DIR then holds {train,valid,test}.txt (a label and a formula a line), dict.txt and meta.json, for fairseq's --task
text_classification.  The environment variable PYTHON names the interpreter (default python3 or .venv's).
TEXT
}

demand_out "$@"
run_python -m seqstruct prepare listops "$@"
