"""Adam and the norm of gradients over all parameters at once give fairseq's numbers."""

from __future__ import annotations

import inspect

import pytest
import torch
from fairseq import utils
from fairseq.optim.adam import Adam

from seqstruct.bridge.patches import optimization
from seqstruct.bridge.patches.compat import prepare_fairseq
from seqstruct.bridge.patches.patch import MARK

SIZES = [(5, 13), (1,), (7,), (0,), (300, 300), (13, 5, 7), (2,)]
fairseq_step, fairseq_clip = (inspect.unwrap(f) for f in (Adam.step, utils.clip_grad_norm_))


def parameters(dtype=torch.float32, device="cpu"):
    generator = torch.Generator().manual_seed(13)
    return [torch.nn.Parameter(torch.randn(size, generator=generator).to(device, dtype)) for size in SIZES]


def both(updates=5, dtype=torch.float32, device="cpu", **named):
    """The parameters after updates by fairseq's own and by ours; the third has no gradient in the second."""
    generator, found = torch.Generator().manual_seed(5), [parameters(dtype, device), parameters(dtype, device)]
    adams = [Adam(values, **{"lr": 0.1, "betas": (0.9, 0.98), **named}) for values in found]
    for update in range(updates):
        gradients = [3 * torch.randn(size, generator=generator).to(device, dtype) for size in SIZES]
        for values in found:
            for i, (p, gradient) in enumerate(zip(values, gradients, strict=True)):
                p.grad = None if (update, i) == (1, 2) else gradient.clone()
        norms = [fairseq_clip(found[0], 1.5), optimization.clip_grad_norm(fairseq_clip, found[1], 1.5)]
        torch.testing.assert_close(*norms, rtol=0 if device == "cpu" else 1e-6, atol=0)
        fairseq_step(adams[0])
        optimization.step(fairseq_step, adams[1])
    return adams


@pytest.mark.parametrize("named", [{}, {"weight_decay": 0.1}, {"eps": 1e-3}, {"amsgrad": True}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_updates_are_fairseqs_to_the_last_bit(dtype, named):
    both_ways = [(adam.state_dict(), adam.param_groups[0]["params"]) for adam in both(dtype=dtype, **named)]
    torch.testing.assert_close(*both_ways, rtol=0, atol=0)


def test_moments_of_another_precision_are_made_single():
    (adam, _) = both(1)
    for state in adam.state.values():
        state["exp_avg"] = state["exp_avg"].double()
    optimization.step(fairseq_step, adam)
    assert {state["exp_avg"].dtype for state in adam.state.values()} == {torch.float32}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_closure_is_called_once_with_gradients(dtype):
    (adam, _), called = both(1, dtype), []
    (p, *_) = adam.param_groups[0]["params"]

    def closure():
        called.append(1)
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimization.step(fairseq_step, adam, closure).requires_grad and called == [1]


def test_sparse_gradients_are_refused_as_by_fairseq():
    p = torch.nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3).to_sparse()
    with pytest.raises(RuntimeError, match="sparse"):
        optimization.step(fairseq_step, Adam([p]))


@pytest.mark.parametrize("most", [0.0, 1e-3, 1e3])
def test_norm_and_clipping(most):
    found = [parameters(), parameters()]
    for values in found:
        for p in values:
            p.grad = p.detach().clone()
        values[1].grad = None
    norm = optimization.clip_grad_norm(fairseq_clip, iter(found[1]), most, lambda norm: 2 * norm)
    assert torch.equal(fairseq_clip(found[0], most, lambda norm: 2 * norm), norm)
    assert all(torch.equal(p.grad, q.grad) for p, q in zip(*found, strict=True) if p.grad is not None)


def test_both_stand_in_fairseqs_places():
    prepare_fairseq()
    for place, function in ((Adam.step, optimization.step), (utils.clip_grad_norm_, optimization.clip_grad_norm)):
        assert any(name.endswith(f"{function.__module__}.{function.__qualname__}") for name in getattr(place, MARK))
