#!/usr/bin/env bash
# What a wheel gives in an environment of its own, away from the checkout: report, configs, and a training from them.
set -euo pipefail

if [[ "${1:-}" == "--help" || "${1:-}" == "-h" ]]; then
    echo "Usage: .ci/installed.sh    install the wheel into a fresh environment that sees the packages of .venv, and use it."
    exit 0
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
checkout="$PWD"
python="$checkout/.venv/bin/python"
scratch="$(cd "$(mktemp -d)" && pwd -P)"
trap 'rm -rf "$scratch"' EXIT
site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

fail() {
    echo "installed wheel: $1" >&2
    exit 1
}

PYTHON="$python" .ci/wheel.sh "$scratch/dist"
"$python" -m venv --without-pip "$scratch/venv"
fresh="$scratch/venv/bin"
"$python" -m pip --disable-pip-version-check --python "$fresh/python" install --quiet --no-index --no-deps \
    "$scratch"/dist/*.whl
# a .pth in a folder that a .pth names is not read, so the editable install of the checkout stays out of sight
site "$python" >"$(site "$fresh/python")/dependencies.pth"

cd "$scratch"
unset PYTHONPATH
user_dir="$("$fresh/seqstruct" path)"
configs="$("$fresh/seqstruct" path --configs)"
[[ "$user_dir" == "$(site "$fresh/python")/seqstruct" ]] || fail "the package is $user_dir"
[[ "$configs" == "$user_dir"/* ]] || fail "the configs are $configs"
diff --recursive "$checkout/configs" "$configs"
"$fresh/seqstruct" report stack_attention 1 >report.txt
# the records are in the wheel and the recipes are not, so only the checkout names a table's recipe
(cd "$checkout" && "$python" -m seqstruct report stack_attention 1) | sed '/^Recipe: /d' | diff - report.txt
"$fresh/seqstruct" report stack_attention 1 --format html | grep -q "</html>" || fail "the report has no page"

# the operators' library is in the wheel and needs no compiler; a wheel without it is made where there is none
run() { env CXX=false CC=false "$@" "$fresh/python" operators.py; }
cat >operators.py <<'END'
import torch
from seqstruct.ops.compiled import switched_on
from seqstruct.ops.superposition import superposition_stack
readings, _ = superposition_stack(torch.eye(3)[None], torch.ones(1, 3, 2))
print(switched_on(), readings.tolist())
END
printed="$(run SEQSTRUCT_COMPILED=1)" || fail "its operators do not load"
[[ "$printed" == "True ${printed#True }" ]] || fail "its operators are off"
[[ "$(run SEQSTRUCT_COMPILED=0)" == "False ${printed#True }" ]] || fail "its operators give other numbers than PyTorch"
(cd "$checkout" && PYTHON="$python" CXX=false .ci/wheel.sh "$scratch/bare") || fail "no wheel without a compiler"
"$python" -m pip --disable-pip-version-check install --quiet --no-index --no-deps --target "$scratch/none" \
    "$scratch"/bare/*.whl
[[ "$(run PYTHONPATH="$scratch/none" 2>said)" == "False ${printed#True }" ]] || fail "without its library it gives other numbers"
[[ "$(grep -c "ops.compiled.build" said)" == 1 ]] || fail "a missing library is not named once: $(cat said)"

"$fresh/seqstruct" prepare cfl dyck --lengths 5:9 --test-lengths 5:9 --train 40 --valid 20 --out data
"$fresh/python" -m fairseq_cli.hydra_train --config-dir "$configs/stack_attention/cfl" --config-name train row=tf_sup \
    scale=small task.data="$scratch/data" common.user_dir="$user_dir" \
    optimization.max_update=2 checkpoint.save_dir="$scratch/run" >train.log 2>&1 || { tail -n 30 train.log; fail "no training"; }
[[ -s run/checkpoint_last.pt ]] || fail "the training left no checkpoint"
echo "installed wheel: report, configs and training work"
