"""The linear layer by either library: values, derivatives, and which is chosen."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional as F

from seqstruct.attention.linear import Linear
from seqstruct.ops import linear as module
from seqstruct.ops.linear import VARIABLE, choice, linear

needs_onednn = pytest.mark.skipif(not module._there(), reason="this PyTorch has no linear layer of oneDNN")


@pytest.fixture(params=["onednn", "torch"])
def chosen(request, monkeypatch):
    if request.param == "onednn" and not module._there():
        pytest.skip("this PyTorch has no linear layer of oneDNN")
    monkeypatch.setenv(VARIABLE, request.param)
    return request.param


@pytest.fixture()
def called(monkeypatch):
    """Shapes of the products that oneDNN was given."""
    shapes, product = [], module._product
    monkeypatch.setattr(module, "_product", lambda *x: shapes.append(tuple(x[0].shape)) or product(*x))
    return shapes


def draw(generator, *shape):
    return torch.randn(shape, generator=generator).requires_grad_()


def first_and_second(form, inputs, weight, bias):
    """The result, the gradients of a weighting of it, and those of a weighting of these."""
    given = [x for x in (inputs, weight, bias) if x is not None]
    result = form(inputs, weight, bias)
    weights = torch.linspace(-1, 1, result.numel()).view_as(result).requires_grad_()
    first = torch.autograd.grad(result, given, weights, create_graph=True)
    second = torch.autograd.grad(sum(x.square().sum() for x in first), [*given[:2], weights])
    return [result, *first, *second]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", [(5, 13), (2, 7, 13), (1, 13), (3, 1, 2, 13)])
def test_values_and_derivatives_are_those_of_pytorch(shape, biased, chosen, called, generator):
    given = draw(generator, *shape), draw(generator, 7, 13), draw(generator, 7) if biased else None
    expected = first_and_second(F.linear, *given)
    for ours, theirs in zip(first_and_second(linear, *given), expected, strict=True):
        assert (ours - theirs).abs().max() <= 2e-6 * theirs.abs().max()
    assert bool(called) == (chosen == "onednn")


def test_strides_are_heeded(chosen, generator):
    """Parts of matrices, turned ones, and gradients that are one number over and over."""
    inputs, weight = draw(generator, 9, 2, 6).transpose(0, 1)[..., 1:], draw(generator, 12, 8)[::2, 2:7]
    found, expected = linear(inputs, weight), F.linear(inputs, weight)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    given = [inputs, weight]
    grads = torch.autograd.grad(found.sum(), given), torch.autograd.grad(expected.sum(), given)
    torch.testing.assert_close(*grads, rtol=1e-5, atol=1e-5)
    one = torch.ones(1, 1).expand(4, 5)
    torch.testing.assert_close(linear(one, weight), F.linear(one, weight))


@pytest.mark.parametrize("bias", [
    torch.randn(24, generator=torch.Generator().manual_seed(1))[::2], torch.ones(1).expand(12), torch.ones(1),
    torch.ones(1, 12), torch.randn(12, 3, generator=torch.Generator().manual_seed(2))[:, 1],
], ids=["strided", "expanded", "one", "row", "column"])
def test_biases_of_any_strides_are_heeded(bias, chosen, generator):
    inputs, weight = draw(generator, 5, 13), draw(generator, 12, 13)
    torch.testing.assert_close(linear(inputs, weight, bias), F.linear(inputs, weight, bias), rtol=1e-5, atol=1e-5)


@needs_onednn
def test_onednn_gets_whole_matrices(monkeypatch, generator):
    """Of parts of matrices it has but a form that takes a thousand times as long."""
    monkeypatch.setenv(VARIABLE, "onednn")
    given, product = [], torch.ops.mkldnn._linear_pointwise
    spy = SimpleNamespace(_linear_pointwise=lambda *x: given.extend(x[:2]) or product(*x))
    monkeypatch.setattr(torch.ops, "mkldnn", spy)
    inputs, weight = draw(generator, 9, 8)[:, 2:7], draw(generator, 6, 8)[:, 2:7]
    linear(inputs, weight).sum().backward()
    assert len(given) == 6 and all(x.is_contiguous() or x.t().is_contiguous() for x in given)


@needs_onednn
@pytest.mark.parametrize("size", [3, 5, 13])
def test_the_smaller_matrix_is_turned_for_the_gradient_of_weights(size, monkeypatch, called, generator):
    """Of a vocabulary, the scores' gradient is the largest matrix of a training."""
    monkeypatch.setenv(VARIABLE, "onednn")
    inputs, weight = torch.randn(7, 5, generator=generator), draw(generator, size, 5)
    (found,) = torch.autograd.grad(linear(inputs, weight).sum(), weight)
    assert called[1:] == [(min(5, size), 7)]
    torch.testing.assert_close(found, inputs.sum(0).expand(size, 5))


def test_results_may_change_in_place(chosen, generator):
    """As fairseq's attention scales its queries."""
    inputs, weight = draw(generator, 2, 3, 5), draw(generator, 4, 5)
    found = linear(inputs, weight)
    found *= 2
    grads = torch.autograd.grad(found.sum(), (inputs, weight))
    torch.testing.assert_close(grads, torch.autograd.grad(2 * F.linear(inputs, weight).sum(), (inputs, weight)))


def test_what_it_is_not_made_for_is_left_to_pytorch(monkeypatch, called, generator):
    monkeypatch.setenv(VARIABLE, "onednn" if module._there() else "torch")
    inputs, weight = draw(generator, 3, 5), draw(generator, 4, 5)
    torch.testing.assert_close(linear(inputs.double(), weight.double()), F.linear(inputs.double(), weight.double()))
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(inputs, weight).dtype == torch.bfloat16
    assert linear(inputs[:0], weight).shape == (0, 4) and linear(inputs[0], weight).shape == (4,)
    assert torch.func.vmap(linear, (0, None))(inputs.unsqueeze(1), weight).shape == (3, 1, 4)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(inputs.detach(), inputs.detach())
        expected = F.linear(inputs, weight)
        for given in (weight, weight.detach()):
            torch.testing.assert_close(forward_ad.unpack_dual(linear(dual, given)).tangent, expected)
    assert linear(inputs.to("meta"), weight.to("meta")).is_meta
    compiled = torch.compile(linear, backend="eager", fullgraph=True)
    assert torch.equal(compiled(inputs, weight), F.linear(inputs, weight))
    with pytest.raises(RuntimeError):
        linear(inputs, weight[:, 1:])
    assert not called


@needs_onednn
@pytest.mark.parametrize("faster", [False, True])
def test_auto_goes_by_processor_and_size(faster, monkeypatch, called, generator):
    monkeypatch.setenv(VARIABLE, "auto")
    monkeypatch.setattr(module, "_faster", lambda: faster)
    monkeypatch.setattr(module, "LARGE", 3 * 5 * 4)
    weight = draw(generator, 4, 5)
    for rows in (2, 3, 7):
        linear(draw(generator, rows, 5), weight)
    assert called == ([(3, 5), (7, 5)] if faster else [])
    assert choice() == ("auto: onednn" if faster else "auto: torch")
    monkeypatch.delenv(VARIABLE)
    assert choice().startswith("auto: ")


@pytest.mark.parametrize(("vendor", "expected"), [("AuthenticAMD", True), ("GenuineIntel", False)])
def test_the_processor_is_known_by_its_maker(vendor, expected, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_there", lambda: True)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    (tmp_path / "cpuinfo").write_text(f"vendor_id\t: {vendor}\nmodel name\t: X\n", encoding="utf-8")
    assert module._faster.__wrapped__(tmp_path / "cpuinfo") == expected
    monkeypatch.setattr(module.platform, "processor", lambda: vendor)
    assert module._faster.__wrapped__(tmp_path / "none") == expected


def test_choices_are_checked(monkeypatch, generator):
    monkeypatch.setenv(VARIABLE, "fast")
    with pytest.raises(ValueError, match="expected SEQSTRUCT_LINEAR to be one of auto, torch, onednn, got 'fast'"):
        linear(draw(generator, 2, 3), draw(generator, 4, 3))
    monkeypatch.setenv(VARIABLE, "onednn")
    monkeypatch.setattr(module, "_there", lambda: False)
    with pytest.raises(ValueError, match="has no linear layer of oneDNN"):
        choice()


@needs_onednn
def test_layers_of_ours_and_of_pytorch_follow(monkeypatch, called, generator):
    """Those of fairseq are PyTorch's, which the bridge mends."""
    monkeypatch.setenv(VARIABLE, "onednn")
    for layer in (Linear(5, 3), nn.Linear(5, 3)):
        called.clear()
        found = layer(draw(generator, 2, 5).detach())
        assert called == [(2, 5)] and found.requires_grad


@needs_onednn
def test_a_run_that_goes_on_gets_the_same_bits(monkeypatch, generator):
    """Wherever the tensors lie, and whatever came before."""
    monkeypatch.setenv(VARIABLE, "onednn")
    shapes, found = ((70, 130), (33, 130)), []
    values = [torch.randn(shape, generator=generator) for shape in shapes]
    for offset in (0, 1, 5):
        leaves = [torch.empty(x.numel() + offset)[offset:].view(x.shape).copy_(x).requires_grad_() for x in values]
        linear(leaves[0].detach()[: offset + 1], leaves[1].detach())
        result = linear(*leaves)
        found.append([result, *torch.autograd.grad(result, leaves, result.detach().sin())])
    assert all(torch.equal(x, y) for other in found[1:] for x, y in zip(found[0], other, strict=True))
