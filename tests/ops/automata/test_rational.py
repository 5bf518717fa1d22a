"""Rational recurrences: reference numbers, step by step, padding, extremes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqstruct.ops.automata import PATTERNS, rational_initial, rational_recurrence, rational_step
from seqstruct.ops.scan import gated_scan

NAMES = {"B": "B", "Bm+": "B_max_plus", "C": "C", "F": "F"}
KINDS = pytest.mark.parametrize("automaton", PATTERNS)
GATE = pytest.mark.parametrize("gate", [False, True], ids=["no gate", "gate"])
PARAMETERS = ["x", "W_f", "b_f", "W_u", "W_o", "b_o", "b_p", "b_r"]


def draw(generator, automaton, B, T, d, gate):
    K, J = 2 * PATTERNS[automaton] + gate, PATTERNS[automaton]
    shapes = [(B, T, K, d), (B, J, d)] + ([(2, d), (d,)] if automaton == "F" else [])
    return [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]


def of_f(extra):
    return dict(zip(("final_logits", "epsilon_logits"), extra, strict=False))


def loop(automaton, projected, state, *extra):
    hidden, scores = [], []
    for column in projected.unbind(1):
        step = rational_step(automaton, column, state, **of_f(extra))
        state = step.state
        hidden.append(step.hidden)
        scores.append(step.scores)
    return torch.stack(hidden, 1), torch.stack(scores, 1), state


@pytest.mark.parametrize("case", ["", "_init_state", "_nogate"])
@pytest.mark.parametrize("kind", ["B", "Bmplus", "C", "F"])
def test_reference(golden, kind, case):
    with np.load(golden("attention", f"rrnn_{kind}{case}.npz")) as file:
        data = {k: torch.from_numpy(file[k]) for k in file.files if file[k].dtype == np.float64}
        automaton, gate = NAMES[str(file["kind"])], bool(file["use_output_gate"])
    J = PATTERNS[automaton]
    p = {k: data[k].clone().requires_grad_() for k in PARAMETERS}
    x = p["x"]
    columns = [c for j in range(J) for c in (x @ p["W_f"][j].T + p["b_f"][j], x @ p["W_u"][j].T)]
    columns += [x @ p["W_o"].T + p["b_o"]] if gate else []
    projected, state = torch.stack(columns, 2), data["c_init"][:J].transpose(0, 1)
    extra = (p["b_p"], p["b_r"]) if automaton == "F" else ()
    found = rational_recurrence(automaton, projected, state, **of_f(extra))
    torch.testing.assert_close(found.scores, data["c"], rtol=0, atol=1e-12)
    torch.testing.assert_close(found.hidden, data["h"], rtol=0, atol=1e-12)
    for j in range(J):
        torch.testing.assert_close(found.state[:, j], data[f"c{j + 1}"][:, -1], rtol=0, atol=1e-12)
    hidden, scores, _ = loop(automaton, projected, state, *extra)
    torch.testing.assert_close((hidden, scores), (found.hidden, found.scores), rtol=0, atol=1e-12)
    (found.hidden * data["w"]).sum().backward()
    for name in PARAMETERS:
        gradient = torch.zeros_like(p[name]) if p[name].grad is None else p[name].grad
        torch.testing.assert_close(gradient, data[f"grad_{name}"], rtol=0, atol=1e-12)


def test_simple_recurrent_unit(golden):
    """The unit of Lei et al. without the state in its gates; with it, as later published, it is another function."""
    for name, rational in (("sru_layer_v0", True), ("sru_layer", False)):
        with np.load(golden("attention", f"{name}.npz")) as file:
            x, W, bias, c, h = (torch.from_numpy(file[k]) for k in ("x", "W", "bias", "c", "h"))
        x = x.transpose(0, 1)  # B T d
        candidate, forget, reset = torch.einsum("btc,ckd->kbtd", x, W)
        states = gated_scan(forget + bias[0], candidate)
        assert torch.allclose(states, c.transpose(0, 1), rtol=0, atol=1e-12) == rational
        hidden = torch.lerp(x, states, (reset + bias[1]).sigmoid())
        assert torch.allclose(hidden, h.transpose(0, 1), rtol=0, atol=1e-12) == rational


@KINDS
@GATE
@pytest.mark.parametrize(("B", "T", "d"), [(2, 1, 3), (5, 7, 3), (1, 13, 2)])
def test_steps_equal_all_at_once(generator, automaton, gate, B, T, d):
    leaves = draw(generator, automaton, B, T, d, gate)
    found = rational_recurrence(automaton, *leaves[:2], **of_f(leaves[2:]))
    expected = loop(automaton, *leaves)
    torch.testing.assert_close(tuple(found), expected, rtol=0, atol=1e-12)
    weights = [torch.randn(x.shape, generator=generator, dtype=torch.float64) for x in expected]
    used = expected[0].sum() + sum((x * w).sum() for x, w in zip(expected, weights, strict=True))
    wanted = torch.autograd.grad(used, leaves)
    used = found.hidden.sum() + sum((x * w).sum() for x, w in zip(found, weights, strict=True))
    torch.testing.assert_close(torch.autograd.grad(used, leaves), wanted, rtol=0, atol=1e-12)


@KINDS
def test_compiled_graphs_have_the_same_numbers(generator, automaton):
    torch._dynamo.reset()
    leaves = draw(generator, automaton, 2, 5, 3, True)

    def read(projected, state, *extra):
        found = rational_recurrence(automaton, projected.sin(), state, **of_f(extra))
        return found.hidden, found.scores, found.state

    both = []
    for form in (read, torch.compile(read, backend="aot_eager")):
        found = form(*leaves)
        both.append((found, torch.autograd.grad(sum(x.square().sum() for x in found), leaves)))
    torch.testing.assert_close(*both, rtol=0, atol=1e-12)


@KINDS
def test_no_words(generator, automaton):
    projected, state, *extra = draw(generator, automaton, 2, 0, 3, True)
    found = rational_recurrence(automaton, projected, state, **of_f(extra))
    assert found.hidden.shape == found.scores.shape == (2, 0, 3)
    assert torch.equal(found.state, state)


@KINDS
@GATE
def test_gradcheck(generator, automaton, gate):
    leaves = draw(generator, automaton, 2, 4, 2, gate)
    assert torch.autograd.gradcheck(lambda p, s, *e: tuple(rational_recurrence(automaton, p, s, **of_f(e))), leaves)


@KINDS
@GATE
@pytest.mark.parametrize("carried", [False, True])
def test_padding_is_invisible(generator, automaton, gate, carried):
    projected, state, *extra = (x.detach() for x in draw(generator, automaton, 4, 6, 3, gate))
    state = state if carried else None
    mask = torch.tensor([[0] * 6, [1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1] * 6]).bool()
    hidden = projected.masked_fill(mask[..., None, None], float("nan")).requires_grad_()
    found = rational_recurrence(automaton, hidden, state, mask, **of_f(extra))
    (gradient,) = torch.autograd.grad(found.hidden[~mask].sum() + found.state[:3].sum(), hidden)
    assert not gradient[mask].any()
    for b in range(4):
        real = projected[b : b + 1, ~mask[b]].requires_grad_()
        alone = rational_recurrence(automaton, real, None if state is None else state[b : b + 1], **of_f(extra))
        torch.testing.assert_close(found.hidden[b : b + 1, ~mask[b]], alone.hidden, rtol=0, atol=1e-14)
        torch.testing.assert_close(found.state[b], alone.state[0], rtol=0, atol=1e-14)
        if b < 3:
            (wanted,) = torch.autograd.grad(alone.hidden.sum() + alone.state.sum(), real)
            torch.testing.assert_close(gradient[b : b + 1, ~mask[b]], wanted, rtol=0, atol=1e-13)


@KINDS
def test_gates_of_zero_and_one(generator, automaton):
    projected, state, *extra = draw(generator, automaton, 2, 4, 3, False)
    for logit in (1e4, -1e4):
        extreme = projected.detach().clone()
        extreme[:, :, ::2] = logit
        extreme.requires_grad_()
        found = rational_recurrence(automaton, extreme, state, **of_f(extra))
        assert torch.autograd.grad(found.hidden.sum(), extreme)[0].isfinite().all()
        if logit > 0 and automaton != "B_max_plus":
            assert torch.equal(found.state, state)
        if logit < 0 and PATTERNS[automaton] == 1:
            assert torch.equal(found.scores, extreme[:, :, 1])


@KINDS
def test_types_and_strides(generator, automaton):
    projected, state, *extra = (x.detach().bfloat16() for x in draw(generator, automaton, 3, 5, 7, True))
    found = rational_recurrence(automaton, projected, state, **of_f(extra))
    exact = rational_recurrence(automaton, projected.float(), state.float(), **of_f([x.float() for x in extra]))
    for narrow, wide in zip(found, exact, strict=True):
        assert torch.equal(narrow, wide.bfloat16())
    turned = projected.float().permute(3, 2, 0, 1).contiguous().permute(2, 3, 1, 0)
    again = rational_recurrence(automaton, turned, state.float(), **of_f([x.float() for x in extra]))
    torch.testing.assert_close(tuple(again), tuple(exact))


@KINDS
def test_long_sequences(generator, automaton):
    """Long enough for chunks of steps, in both directions."""
    projected, state, *extra = draw(generator, automaton, 1, 300, 2, True)
    found = rational_recurrence(automaton, projected, state, **of_f(extra))
    hidden, _, after = loop(automaton, projected, state, *extra)
    torch.testing.assert_close((found.hidden, found.state), (hidden, after), rtol=0, atol=1e-12)
    leaves = [projected, state, *extra]
    gradients = (torch.autograd.grad(x.square().sum(), leaves) for x in (found.hidden, hidden))
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-11)


def test_state_before_any_word():
    like = torch.zeros(1)
    assert rational_initial("B_max_plus", 2, 3, like).tolist() == [[[-float("inf")] * 3]] * 2
    assert rational_initial("F", 1, 2, like).tolist() == [[[0.0, 0.0], [0.0, 0.0]]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("D", torch.zeros(1, 2, 2, 3)), "expected an automaton of B, B_max_plus, C, F, got 'D'"),
        (("C", torch.zeros(1, 2, 3, 3)), r"C: expected projected B T K d with K 4 or 5, got \(1, 2, 3, 3\)"),
        (("B", torch.zeros(1, 2, 2, 3), torch.zeros(1, 2, 3)), r"B: expected state \(1, 1, 3\), got \(1, 2, 3\)"),
        (("F", torch.zeros(1, 2, 4, 3)), "belong to F, both of them, and to F alone"),
        (("B", torch.zeros(1, 2, 2, 3), None, torch.zeros(1, 3).bool()), "padding_mask: expected 1 x 2, got 1 x 3"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        rational_recurrence(*arguments)
