#!/usr/bin/env bash
# Reviews of films byte by byte (Maas et al. 2011; Tay et al. 2021; Peng 2022, section 4.4.3).
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/imdb.sh --out DIR [options]

Prepares 25,000 reviews to train and 25,000 to test, two classes, up to 4,000 bytes each.  The arena has no validation
set of its own: there, and here unless --valid is given, the test set validates.  Without --from it downloads 84 MB from
ai.stanford.edu.  The checksum and the numbers of reviews are verified.

  --corpus NAME      imdb, or movie-reviews: 2,000 reviews of nltk's data (4 MB), split 80 : 10 : 10 (default imdb)
TEXT
  raw_options "aclImdb_v1.tar.gz or movie_reviews.zip"
  cat <<'TEXT'
  --max-length N     bytes of a text; what is longer is cut off (default 4000)
  --valid N          reviews of training held out to validate, 0: the test set validates (default 0)
  --seed N           of the draw (default 1)
  --help             this text

If the address is gone: the archive is linked from https://ai.stanford.edu/~amaas/data/sentiment/; name its folder by
--from.
DIR then holds {train,valid,test}.txt (a label and the bytes of a text a line), dict.txt and meta.json, for fairseq's
--task text_classification.  The environment variable PYTHON names the interpreter (default python3 or .venv's).
TEXT
}

take_option --corpus imdb "$@"
case $taken in imdb | movie-reviews) ;; *) fail "expected the corpus imdb or movie-reviews, got $taken" ;; esac
prepare_corpus lra "$taken" ${others[@]+"${others[@]}"}
