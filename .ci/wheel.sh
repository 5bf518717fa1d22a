#!/usr/bin/env bash
# Build the sdist from what git tracks, and the wheel from the sdist; nothing is written into the checkout.
set -euo pipefail

if [[ $# -ne 1 || "$1" == -* ]]; then
    echo "Usage: .ci/wheel.sh DIR    write seqstruct-VERSION.tar.gz, and the wheel made of it, into DIR; needs no network."
    echo "PYTHON names the interpreter, which has setuptools and pip (default: .venv/bin/python)."
    exit "$(($# != 1))"
fi

mkdir -p "$1"
out="$(cd "$1" && pwd)"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python="${PYTHON:-$PWD/.venv/bin/python}"
scratch="$(cd "$(mktemp -d)" && pwd -P)"
trap 'rm -rf "$scratch"' EXIT

git ls-files -z | tar -c --null -T - | tar -x -C "$scratch"
(cd "$scratch" && "$python" setup.py --quiet sdist --dist-dir "$out" 2>log) || { cat "$scratch/log" >&2 && exit 1; }
"$python" -m pip wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation \
    --wheel-dir "$out" "$out"/seqstruct-*.tar.gz
