#!/usr/bin/env bash
# Semantic dependency graphs of SDP 2015 and Stanford dependencies of the Penn Treebank, as Peng (2022) splits them.
set -euo pipefail

# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: data-prep/sdp2015.sh --from DIR --out DIR [--trees PATH [--corenlp JAR]] [options]

Splits the graphs of SDP 2015 (DM, PSD and PAS; sections 00-19 to train, 20 to validate, 21 and Brown to test) and the
trees of the Penn Treebank (20 to validate, 21 to test, the rest to train), which become Stanford dependencies.

Both corpora are licensed by the Linguistic Data Consortium and nothing is downloaded: order LDC2016T10 (SDP 2014 and
2015) and LDC99T42 (Treebank-3) at https://catalog.ldc.upenn.edu/.  The converter is that of Stanford CoreNLP (the
source's Stanford dependencies: version 3.3), https://stanfordnlp.github.io/CoreNLP/, and needs a Java.

  --out DIR        folder to make; it appears when all is done
  --from DIR       folder with en.{dm,psd,pas}.sdp, en.id.{dm,psd,pas}.sdp and en.ood.{dm,psd,pas}.sdp, at any depth
  --trees PATH     folder, or .zip, with wsj_SSNN.mrg; or folder with wsj_SSNN.conllx that were converted before
  --corenlp JAR    CoreNLP's jar, for .mrg files
  --java COMMAND   the Java to run (default java)
  --unchecked      take whatever numbers of sentences there are
  --help           this text

DIR then holds {dm,psd,pas}.{train,dev,id,ood}.sdp, ptb.{train,dev,test}.conllu and corpus.json, as --from of
recipes/peng_thesis/syntax_then_graph_published.py wants them.  Free stand-ins need no preparation of their own:
seqstruct prepare parsing reads the files of Universal Dependencies.  The environment variable PYTHON names the
interpreter (default python3 or .venv's).
TEXT
}

demand_out "$@"
run_python -m seqstruct.data.sdp2015 "$@"
