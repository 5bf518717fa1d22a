"""Operators and mechanisms leave numbers on their device: what looks at one from the host is counted, file by file.

FakeTensorMode has no CUDA tensors where PyTorch was built without CUDA, so this reads the source, and some mechanisms
run on the device `meta`, which holds no numbers.
"""

from __future__ import annotations

import ast
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

import seqstruct
from seqstruct.attention import Site
from seqstruct.testing.cases import build, cases, inputs

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
    "attention/memory/base.py": 2,
    "attention/memory/clustering.py": 2,
    "attention/memory/linformer.py": 1,
    "attention/short_convolution.py": 1,
    "attention/softmax/base.py": 2,
    "attention/softmax/lsh.py": 2,
    "attention/softmax/normalized.py": 1,
    "attention/softmax/segmentation.py": 7,
    "attention/stacks/nondeterministic.py": 1,
    "attention/stacks/state_stack.py": 1,
    "attention/trees/arc_scorer.py": 2,
    "attention/trees/base.py": 1,
    "attention/trees/dependency.py": 4,
    "ops/automata/wfsa.py": 9,
    "ops/log_potentials.py": 4,
    "ops/marginals.py": 3,
    "ops/masking.py": 1,
    "ops/max_marginals.py": 1,
    "ops/memory/blocks.py": 1,
    "ops/memory/bounded_memory.py": 2,
    "ops/memory/feature_maps.py": 2,
    "ops/pushdown/best_run.py": 5,
    "ops/pushdown/stack.py": 1,
    "ops/pushdown/step.py": 6,
    "ops/pushdown/tape.py": 2,
    "ops/rows.py": 4,
    "ops/superposition/tape.py": 1,
    "ops/trees/layout.py": 1,
    "ops/trees/projection.py": 4,
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


NAMES = ("abc_mlp", "delta", "gla", "linear", "nondeterministic_stack", "performer", "rfa", "superposition_stack")


@pytest.mark.parametrize("name", NAMES)
def test_passes_on_a_device_without_numbers(name, generator, monkeypatch):
    monkeypatch.setattr(torch, "autocast", lambda *arguments, **options: nullcontext())  # there is none on meta
    case = next(case for case in cases(decoder=True) if case.name == name and case.site is Site.DECODER_SELF)
    attention = build(case, generator, torch.float32).to("meta")
    query = inputs(case, generator).query.detach().float().to("meta").requires_grad_()
    mask = torch.zeros(query.shape[:2], dtype=torch.bool, device="meta")
    output = attention(query, query, query, mask)[0].output
    assert output.is_meta and output.shape == query.shape
    output.sum().backward()
    assert query.grad.is_meta
