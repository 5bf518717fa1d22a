#!/usr/bin/env bash
# A task of GLUE (Wang et al. 2019; Peng 2022, section 5.5.3) in RoBERTa's encoding, for fairseq's sentence_prediction.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/glue.sh --task NAME --out DIR [options]

Prepares one task of GLUE:
  mnli   392,702 to train, 9,815 matched (valid) and 9,832 mismatched (valid1) to validate; three classes
  qnli   104,743 and 5,463, two classes
  qqp    363,846 and 40,430, two classes
  sst-2  67,349 and 872, two classes
The test sets, without labels, go in as well.  Without --from it downloads the task's archive (7 to 313 MB) and the
byte-pair encoding of GPT-2 from dl.fbaipublicfiles.com, for research use.  Checksums and numbers of lines are verified;
the dictionary dict.txt has no published checksum: that of the first download is recorded in SHA256SUMS beside it and
verified from then on.

  --task NAME        mnli, qnli, qqp or sst-2
TEXT
  raw_options "the archive (MNLI.zip, QNLIv2.zip, QQP-clean.zip, SST-2.zip) or its folder, and encoder.json,
                     vocab.bpe and dict.txt of RoBERTa"
  cat <<'TEXT'
  --help             this text

If an address is gone: the archives are linked from https://gluebenchmark.com/tasks, encoder.json and vocab.bpe come
with GPT-2, dict.txt with every checkpoint of RoBERTa that fairseq publishes; name their folder by --from.
DIR then holds input0/, input1/ (not for sst-2), label/ and corpus.json (labels, counts): it is the data folder of
fairseq-train --task sentence_prediction --init-token 0 --separator-token 2.  The environment variable PYTHON names the
interpreter (default python3 or .venv's).
TEXT
}

take_option --task '' "$@"
demand_out ${others[@]+"${others[@]}"}
[ -n "$taken" ] || fail "--task NAME is needed (see --help)"
prepare_corpus glue "$taken" ${others[@]+"${others[@]}"}
