# prepare NAME OPTIONS: `seqstruct prepare`, by PYTHON, or else by the first of python3 and this clone's .venv that can.
# shellcheck shell=bash
prepare() {
  local root candidate candidates probe='import sys; from importlib.util import find_spec as f
sys.exit(not all(map(f, ("numpy", "torch", "fairseq", "sacremoses", "subword_nmt", "sentencepiece"))))'
  root=$(CDPATH="" cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
  if [ -n "${PYTHON:-}" ]; then candidates=("$PYTHON"); else candidates=(python3 "$root/.venv/bin/python"); fi
  for candidate in "${candidates[@]}"; do
    if "$candidate" -c "$probe" 2>/dev/null; then exec "$candidate" -m seqstruct prepare "$@"; fi
  done
  echo "$(basename "$0"): no Python with what is needed (tried ${candidates[*]}): run make venv in $root, or activate" \
    "the environment that has seqstruct, or name its interpreter in the environment variable PYTHON" >&2 && exit 1
}
