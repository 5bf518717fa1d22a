"""Operators and mechanisms leave numbers on their device: what looks at one from the host is counted, file by file.

FakeTensorMode records no gradients of CUDA tensors where PyTorch was built without CUDA, so this reads the source, and
all mechanisms run on the device `meta`, which holds no numbers.
"""

from __future__ import annotations

import ast
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import seqstruct
from seqstruct.attention import ATTENTIONS
from seqstruct.attention.trees.arc_scorer import Reader
from seqstruct.distributions import base
from seqstruct.ops import marginals
from seqstruct.ops.cells import lstm_sequence
from seqstruct.ops.pushdown import stack
from seqstruct.testing.cases import Case, build, cases, inputs
from tests.gpu.places import WAITING

ROOT = Path(seqstruct.__file__).parent
MAKING = {"arange", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn", "tensor", "zeros"}
LOOKING = {"item", "nonzero", "tolist"}
REDUCED = {"all", "amax", "amin", "any", "max", "min", "sum"}
ALLOWED = {  # at most so many, most of them when modules or states are made, or where errors are raised
    "attention/alignment/alignment_crf.py": 1,
    "attention/alignment/base.py": 2,
    "attention/alignment/local.py": 1,
    "attention/blocks/bigbird.py": 1,
    "attention/blocks/synthesizer.py": 3,
    "attention/delta/gates.py": 2,
    "attention/delta/mlstm.py": 1,
    "attention/kernel/performer.py": 2,
    "attention/kernel/rfa.py": 3,
    "attention/kernel/t2r.py": 2,
    "attention/memory/abc_random.py": 1,
    "attention/memory/base.py": 1,
    "attention/memory/clustering.py": 1,
    "attention/memory/linformer.py": 1,
    "attention/short_convolution.py": 1,
    "attention/softmax/lsh.py": 2,
    "attention/softmax/normalized.py": 1,
    "attention/softmax/segmentation.py": 5,
    "attention/stacks/nondeterministic.py": 1,
    "attention/stacks/state_stack.py": 1,
    "attention/trees/arc_scorer.py": 2,
    "attention/trees/base.py": 1,
    "attention/trees/dependency.py": 3,
    "ops/automata/wfsa.py": 9,
    "ops/dropout.py": 1,
    "ops/log_potentials.py": 4,
    "ops/marginals.py": 3,
    "ops/masking.py": 1,
    "ops/max_marginals.py": 1,
    "ops/memory/blocks.py": 1,
    "ops/memory/bounded_memory.py": 2,
    "ops/memory/feature_maps.py": 2,
    "ops/pushdown/best_run.py": 5,
    "ops/pushdown/stack.py": 3,
    "ops/pushdown/step.py": 4,
    "ops/pushdown/tape.py": 2,
    "ops/pushdown/walk.py": 2,
    "ops/superposition/tape.py": 1,
    "ops/trees/projection.py": 3,
    "ops/trees/semantic_graph.py": 8,
    "ops/trees/span_parsing.py": 1,
    "ops/trees/spanning.py": 8,
}


def looks(node: ast.Call) -> bool:
    """Whether a call waits for a number, or makes a tensor on the CPU."""
    function = node.func
    if isinstance(function, ast.Attribute):
        made = isinstance(function.value, ast.Name) and function.value.id == "torch" and function.attr in MAKING
        if made:
            return not any(keyword.arg == "device" for keyword in node.keywords)
        return function.attr in LOOKING
    if isinstance(function, ast.Name) and function.id in ("bool", "float", "int") and node.args:
        inner = node.args[0]
        return isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in REDUCED
    return False


def test_the_host_looks_where_it_did():
    found = {}
    for path in sorted(file for folder in ("ops", "attention") for file in (ROOT / folder).rglob("*.py")):
        count = sum(isinstance(node, ast.Call) and looks(node) for node in ast.walk(ast.parse(path.read_text("utf-8"))))
        if count:
            found[str(path.relative_to(ROOT))] = count
    more = {path: count for path, count in found.items() if count > ALLOWED.get(path, 0)}
    assert not more, "a tensor without a device, or a number that the host waits for: mend it, or add it above"


class Meta(TorchDispatchMode):
    """Fails where an operator takes or makes a tensor that is not on the device `meta`, single numbers apart."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        elsewhere = [x for x in tree_leaves((args, kwargs, result)) if isinstance(x, Tensor) and not x.is_meta]
        assert not any(x.dim() for x in elsewhere), f"{func} of {[tuple(x.shape) for x in elsewhere]}"
        return result


def pass_on_meta(case: Case) -> None:
    """Both passes with a padding mask, on a device that has no numbers to look at."""
    generator = torch.Generator().manual_seed(5)
    attention = build(case, generator, torch.float32).to("meta")
    query, memory = inputs(case, generator)
    x = query.detach().float().to("meta").requires_grad_()
    y = x if memory is query else memory.detach().float().to("meta").requires_grad_()
    mask = torch.zeros(y.shape[:2], dtype=torch.bool, device="meta")
    with Meta():
        output = attention(x, y, y, mask)[0].output
        output.sum().backward()
    assert output.is_meta and output.shape == x.shape and x.grad.is_meta


@pytest.mark.parametrize("name", sorted(ATTENTIONS))
def test_the_host_waits_only_where_it_is_said_to(name, monkeypatch):
    """Nothing waits for a number but what asks `host_may_look` first; told no, as while a CUDA graph is captured, that
    does not either, no size depends on a number, no tensor is the host's.  tests/gpu says the same of CUDA devices."""
    asked = []
    for module in (base, marginals, stack):
        monkeypatch.setattr(module, "host_may_look", lambda x: asked.append(x))
    monkeypatch.setattr(torch, "autocast", lambda *arguments, **options: nullcontext())  # there is none on meta
    for case in cases([name], one_of_each="site"):
        pass_on_meta(case)
    assert bool(asked) == (name in WAITING)


@pytest.mark.parametrize("train", [True, False])
def test_derivatives_are_asked_of_cudnn_s_lstm_where_there_are_some(train, generator):
    """cuDNN has a backward pass only of a pass that is said to be a training's, whatever mode the module is in."""
    said = []

    class Watched(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function is torch.lstm:
                said.append(args[6])
            return function(*args, **(kwargs or {}))

    x, reader = torch.randn(2, 5, 3, generator=generator), Reader(3, 4).eval()
    weights = [torch.randn(*shape, generator=generator) for shape in ((16, 3), (16, 4), (16,))]
    with Watched(), torch.set_grad_enabled(train):
        reader(x)
        lstm_sequence(x, torch.zeros(2, 4), torch.zeros(2, 4), *weights)
    assert said == [train, train]
