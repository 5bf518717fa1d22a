#!/usr/bin/env bash
# Downsampled ImageNet, 64 x 64, byte by byte (van den Oord et al. 2016; Kitaev et al. 2020), ready for fairseq.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/imagenet64.sh --from DIR --out DIR [options]

Prepares images as 12,288 bytes each, row by row, red, green and blue of a pixel side by side: 1,281,149 to train and
49,999 to validate, in bin/ of 31 GB.

Nothing is downloaded: get an account at https://image-net.org, accept its terms, and take either train_64x64.tar and
valid_64x64.tar (whose checksums are verified) or the arrays train_data_batch_1.npz to train_data_batch_10.npz and
val_data.npz out of the archives Imagenet64_train_part1.zip, Imagenet64_train_part2.zip and Imagenet64_val.zip.

TEXT
  raw_options "{train,valid}_64x64.tar, folders of that name with .png files, or the arrays"
  cat <<'TEXT'
  --train-images N   the first N images alone (default 0: all)
  --valid-images N   likewise
  --help             this text

DIR then holds bin/ (train, valid), for fairseq-train --task language_modeling --sample-break-mode none or --task
stream_language_modeling, and corpus.json (counts, checksums).  Losses of base 2 are bits per dimension.  The
environment variable PYTHON names the interpreter (default python3 or .venv's).
TEXT
}

prepare_corpus byte_streams imagenet64 "$@"
