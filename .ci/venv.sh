#!/usr/bin/env bash
# Make .venv and install seqstruct into it with the pinned packages.
set -euo pipefail

if [[ "${1:-}" == "--help" || "${1:-}" == "-h" ]]; then
    echo "Usage: .ci/venv.sh [PYTHON]    make .venv with PYTHON (default: the first of python3.13 to python3.10, python3"
    echo "                               that is 3.10 to 3.13) and install seqstruct, tests included, with constraints.txt."
    exit 0
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    echo "seqstruct: $1" >&2
    exit 1
}

# fits PYTHON: whether it is Python 3.10 to 3.13; what it answered into $answer, the last line of that into $version.
fits() {
    answer="$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>&1)" || return 1
    version="${answer##*$'\n'}"
    case "$version" in 3.10 | 3.11 | 3.12 | 3.13) ;; *) return 1 ;; esac
}

find_python() {
    local name
    for name in python3.13 python3.12 python3.11 python3.10 python3 python; do
        if command -v "$name" >/dev/null && fits "$name"; then
            echo "$name"
            return
        fi
    done
}

python="${1:-}"
if [[ -z "$python" ]]; then
    python="$(find_python)"
    [[ -n "$python" ]] || fail "no Python 3.10 to 3.13 was found: install one, or name it: make PYTHON=/path/to/python"
fi
command -v "$python" >/dev/null || fail "there is no $python: name a Python 3.10 to 3.13 with make PYTHON=..."
fits "$python" || fail "$python is not Python 3.10 to 3.13: asked for its version it answered \
'$(echo "${answer:-nothing}" | tr -s '\n' ' ' | sed 's/ $//')'; name one with make PYTHON=..."

"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "$python has no venv module: install it (Debian and Ubuntu: apt-get install python$version-venv)"
command -v "${CXX:-c++}" >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null ||
    fail "no C++ compiler was found, and fairseq is built from source: install one (Debian and Ubuntu: \
apt-get install g++; macOS: xcode-select --install)"
"$python" -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
    fail "the headers of $python are missing, and fairseq is built from source: install them (Debian and Ubuntu: \
apt-get install python$version-dev)"

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    rm -rf .venv
    "$python" -m venv .venv
fi
echo "Installing into .venv (Python $version)."
export PIP_CONSTRAINT="$PWD/constraints.txt" PIP_DISABLE_PIP_VERSION_CHECK=1
# fairseq is compiled against the torch that it will run with, so torch comes first and the build is not isolated.
echo "1 of 2: torch."
.venv/bin/python -m pip install --quiet setuptools wheel cython numpy torch
echo "2 of 2: fairseq, which is built from source in two to three minutes, and the rest."
.venv/bin/python -m pip install --quiet --no-build-isolation --editable '.[test,slurm]'
