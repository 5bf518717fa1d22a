"""Every operator of the library by PyTorch's own checks: schema, shapes without numbers, derivative, tracing."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.compiled import Operator, usable
from seqstruct.ops.pushdown import PushdownTape, transition_count
from seqstruct.ops.pushdown.columns import LARGEST_INNER, SMALLEST_TOTAL, Columns, step_order
from seqstruct.ops.pushdown.compiled import CompiledPushdownTape
from seqstruct.ops.pushdown.layout import arrange

B, H, T, D, E, N, m = 2, 2, 5, 3, 4, 6, 7
Q, S = 2, 3


class Draw:
    """draw(sizes ...): a tensor of normal numbers; `leaf` asks for its gradient."""

    def __init__(self, generator, dtype):
        self.generator, self.dtype = generator, dtype

    def __call__(self, *shape):
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64).to(self.dtype)

    def leaf(self, *shape):
        return self(*shape).requires_grad_()


def of_superposition_stack(draw):
    for need_final, height in ((True, 0), (False, 3)):
        yield draw(B, T, 3).softmax(-1).requires_grad_(), draw.leaf(B, T, m), draw.leaf(B, height, m), need_final, True
    yield draw(T, B, 3).transpose(0, 1), draw(B, T, m), draw(B, 2, m), True, False


def of_superposition_stack_backward(draw):
    for args in of_superposition_stack(draw):
        actions, pushed, start, need_final, _ = (x.detach() if isinstance(x, torch.Tensor) else x for x in args)
        readings, final, stacks = torch.ops.seqstruct.superposition_stack(actions, pushed, start, need_final, True)
        for grads in ((readings, None), (None, final if need_final else None)):
            yield actions, stacks, *grads, m, start.size(1), not need_final


def of_superposition_step(draw):
    for sigmoid in (True, False):
        yield 2, 3, sigmoid, draw(B, 3 + m), draw(B, 6, m), draw(B, 3), draw(B, 6, m), draw(B, 2 * m)[:, :m]


def of_superposition_step_backward(draw):
    yield 2, 3, draw(B, m), draw(B, 6, m), draw(B, 3), draw(B, m), draw(B, 6, m), draw(B, 6, m), draw(B, 3 + m)


def of_pushdown_runs(draw):
    weights = arrange(draw(B, T, transition_count(Q, S)).double().softmax(-1), Q, S)
    yield *(x.requires_grad_() for x in weights), draw(T, B, m).double().requires_grad_(), draw(B, m).double()


def of_pushdown_runs_backward(draw):
    *weights, pushed, bottom = (x.detach() for x in next(of_pushdown_runs(draw)))
    ending, popped, around = torch.ops.seqstruct.pushdown_runs(*weights, pushed, bottom)
    yield *weights, pushed, popped, around, ending, torch.ones_like(ending)


def of_pushdown_step(draw):
    columns = Columns(Q, S, 1 + m, 32, 10)
    table = columns.opened(torch.zeros(B, S, 0, dtype=torch.float64), 0).zero_()
    controls, order = draw(B, transition_count(Q, S) + m).double(), step_order(Q, S, m, torch.device("cpu"))
    before = torch.ones(B, dtype=torch.float64), torch.ones(B, dtype=torch.bool)
    after = torch.empty(B, dtype=torch.float64), torch.empty(B, Q * S * m, dtype=torch.float64), before[1].clone()
    limits = SMALLEST_TOTAL, LARGEST_INNER
    yield Q, S, m, 32, 10, 0, 0, *limits, table, controls, order, None, None, None, None, *before, *after


def of_pushdown_step_backward(draw):
    tape = CompiledPushdownTape(draw(B, m), 3, states=Q, symbols=S, sigmoid=True)
    assert isinstance(tape, PushdownTape)
    for _ in range(3):
        tape.step(draw(B, transition_count(Q, S) + m), draw(B, Q * S * m))
    tape.begin_backward()
    kept = tape.weights[2], tape.vectors[2], tape.landed[2], tape.gates
    results = tape.totals[3], tape.readings[2], tape.pending, tape.grads
    yield Q, S, m, 4, 2, True, tape.table, draw(B, Q * S * m).double(), *kept, *results


def of_bounded_memory(draw):
    for means in (True, False):
        given = draw.leaf(B, T, D), draw.leaf(B, T, D), draw.leaf(B, T, E), draw.leaf(B, T, N)
        yield *given, draw.leaf(B, N * (D + E + 1)), draw(B, N), means, False, True
    yield draw(B, T, D), draw(B, T, D), draw(B, T, E), draw(B, T, N).double(), draw(B, N * (D + E + 1)), draw(
        B, N
    ).double(), True, True, False


def of_bounded_memory_backward(draw):
    for args in of_bounded_memory(draw):
        given = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
        output, state, _, *kept = torch.ops.seqstruct.bounded_memory(*given[:8], True)
        for grads in ((output, None), (None, state)):
            yield *given[:4], *kept, *grads, *given[6:8], grads[0] is None


def of_bounded_memory_step(draw):
    given = draw(B, H, 1, D), draw(B, H, 1, E), draw(B, H, 1, N), draw(B, H, 1, D)
    memory = draw(B, H, N, D), draw(B, H, N, E), draw(B, H, N)
    yield *given, None, None, None, *memory, None, True, False
    yield *given, *memory, *map(torch.empty_like, memory), torch.tensor([1, 1]), False, True


def of_linear_attention(draw):
    x = draw.leaf(B, T, D), draw.leaf(B, T, D), draw.leaf(B, T, E)
    decay = -draw(B, T + 1).double().abs().cumsum(1)
    yield *x, draw.leaf(B, D, E), draw.leaf(B, D), None, None, None, None, 1, False, 0.0, True
    whole = draw.leaf(B, T), decay.requires_grad_(), draw.leaf(B, N, D), draw.leaf(B, N)
    yield *x, draw.leaf(B, N, E), draw.leaf(B, N), *whole, 3, False, 0.1, True
    turned = [y.detach().transpose(0, 1).contiguous().transpose(0, 1) for y in x]
    yield *turned, draw(B, 2 * N, E), draw(B, 2 * N), None, None, draw(B, N, D), None, 2, True, 0.0, False


def of_linear_attention_backward(draw):
    for args in of_linear_attention(draw):
        given = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
        output, denominator, *ends, memories, totals = torch.ops.seqstruct.linear_attention(*given[:12], True)
        for grads in ((output, None, None), (None, *ends)):
            known = *given[:3], *given[5:9], memories, totals, output, denominator
            yield *known, *grads, *given[9:12], grads[0] is None


def of_linear_attention_step(draw):
    query, memory = draw(B, H, 1, D), (draw(B, H, D, E), draw(B, H, D))
    written = draw(B, H, 1, D), draw(B, H, 1, E), draw(B, H, 1), draw(B, H, 2).double()
    nothing = None, None, None, None
    yield query, *nothing, None, None, 1, False, 1.0, 0.0, *memory, None, None, None
    yield query, *written, None, None, 0, False, 1.0, 0.1, None, None, *memory, None
    parameters = draw(H, N, D), draw(H, N)
    large = draw(B, H, N, E), draw(B, H, N)
    ends = map(torch.empty_like, large)
    yield query, *written[:2], None, None, *parameters, 3, False, 0.5, 0.0, *large, *ends, torch.tensor([1, 1])


def of_chain_marginals(draw):
    yield draw.leaf(B, T, D), draw.leaf(B, T - 1, D, D), None, True
    yield draw.leaf(B, T, 2), draw(B, T - 1, 2, 2), torch.tensor([T, 0]), True
    yield draw(T, B, D).transpose(0, 1), draw(B, T - 1, D, D).transpose(2, 3), torch.tensor([1, 2]), False
    yield draw.leaf(B, 1, D), draw.leaf(B, 0, D, D), None, True


def of_chain_marginals_backward(draw):
    for args in of_chain_marginals(draw):
        given = [x.detach() if isinstance(x, torch.Tensor) else x for x in args[:3]]
        node, edge, _, exact, kept = torch.ops.seqstruct.chain_marginals(*given, True)
        for grads in ((node, None), (None, edge)):
            yield *given, exact, kept, *grads


def of_projective_marginals(draw):
    for single_root in (False, True):
        yield draw.leaf(B, T, T), None, single_root, True
    yield draw(T, B, T).transpose(0, 1), torch.tensor([0, T - 1]), True, False


of_spanning_marginals = of_projective_marginals


def _of_trees_backward(draw, forward):
    for arcs, lengths, single_root, _ in of_projective_marginals(draw):
        marginals, _, exact, kept = forward(arcs.detach(), lengths, single_root, True)
        yield marginals, lengths, exact, kept, draw(B, T, T), single_root


def of_projective_marginals_backward(draw):
    yield from _of_trees_backward(draw, torch.ops.seqstruct.projective_marginals)


def of_spanning_marginals_backward(draw):
    yield from _of_trees_backward(draw, torch.ops.seqstruct.spanning_marginals)


def of_constituency_marginals(draw):
    for labels in (1, 3):
        yield draw.leaf(B, T, T, labels), torch.tensor([T, 2]), True
    yield draw(T, B, T, 2).transpose(0, 1), torch.tensor([1]).expand(B), False


def of_constituency_marginals_backward(draw):
    for spans, lengths, _ in of_constituency_marginals(draw):
        marginals, _, exact, kept = torch.ops.seqstruct.constituency_marginals(spans.detach(), lengths, True)
        yield marginals, lengths, exact, kept, draw(*spans.shape)


def of_delta_rule(draw):
    x = draw.leaf(B, H, T, D), draw.leaf(B, H, T, D), draw.leaf(B, H, T, E)
    memory, beta = draw.leaf(B, H, D, E), draw(B, H, T).sigmoid().requires_grad_()
    yield *x, None, beta, memory, 1
    yield *x, -draw(B, H, T, D).exp(), None, memory, 1
    yield *x, -draw(B, H, T, D).exp().requires_grad_(), beta, memory, 1
    query, decay = draw(B, H, 2, D), -draw(B, H, 2).exp()
    yield query, draw(B, 4, H, D).transpose(1, 2), draw(B, H, 4, E), decay, draw(B, H, 4), draw(B, H, D, E), 2


def of_delta_rule_backward(draw):
    for args in of_delta_rule(draw):
        given = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
        output, end, residual = torch.ops.seqstruct.delta_rule(*given)
        for grads in ((output, None), (None, end)):
            yield *grads, *given[:6], end, residual, given[6]


def of_delta_rule_scores(draw):
    x = draw.leaf(B, H, T, E), draw.leaf(B, H, T, D), draw.leaf(B, H, T, E)
    yield *x, None, draw.leaf(B, H, D, E)
    yield *x, -draw(B, H, T, D).exp().requires_grad_(), draw.leaf(B, H, D, E)
    yield draw(B, T, H, E).transpose(1, 2), *(y.detach() for y in x[1:]), -draw(B, H, T).exp(), draw(B, H, D, E)


def of_softmax_attention(draw):
    query, key, value = draw.leaf(B, 2 * H, T, D), draw.leaf(B, H, T, D), draw.leaf(B, H, T, E)
    yield query, key, value, None, True, 0.3, 5
    yield query, key, value, torch.ones(1, 1, T, 1, dtype=torch.bool), False, 0.0, 2**62
    seen = torch.tensor([True, False, True, True, False]).expand(B, 2 * H, T, T).contiguous()
    yield draw(T, B, 2 * H, D).permute(1, 2, 0, 3), draw(B, H, T, D), draw(B, H, T, E), seen, False, 0.3, 7


def of_softmax_attention_backward(draw):
    for args in of_softmax_attention(draw):
        given = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
        output, level = torch.ops.seqstruct.softmax_attention(*given)
        yield draw(*output.shape), *given, output, level


def of_dropped(draw):
    yield draw.leaf(B, T, D), 0.3, 5
    yield draw(T, B).t(), 0.0, 2**62


CASES = {name.removeprefix("of_"): case for name, case in globals().items() if name.startswith("of_")}
CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor")


def test_every_operator_is_here():
    assert {x.name for x in Operator.declared} == {f"seqstruct::{name}" for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_checks_of_pytorch(name, compiled, generator):
    compiled(True)
    assert usable(torch.zeros(1))
    for args in CASES[name](Draw(generator, torch.float32)):
        torch.library.opcheck(getattr(torch.ops.seqstruct, name).default, args, test_utils=CHECKS)


@pytest.mark.parametrize("name", CASES)
def test_they_are_traced_with_lengths_that_vary(name, compiled, generator):
    """Values and gradients are those of the operator itself."""
    compiled(True)
    assert usable(torch.zeros(1))
    for args in CASES[name](Draw(generator, torch.float64)):
        op = getattr(torch.ops.seqstruct, name).default
        torch.library.opcheck(op, args, test_utils="test_aot_dispatch_dynamic")


# Of tensors whose other sizes are free, the axes that are.
FREE = {
    "superposition_stack": {"start": {1}},
    "pushdown_step": {"table": {2}},
    "pushdown_step_backward": {"table": {2}},
    "linear_attention_step": {"old_memory": {3}},
    "chain_marginals": {"unary": {1}},
    "projective_marginals": {"arcs": {0}},
    "spanning_marginals": {"arcs": {0}},
    "constituency_marginals": {"spans": {3}},
    "softmax_attention": {"value": {3}, "visible": {0}},
    "softmax_attention_backward": {"visible": {0}},
    "dropped": {"x": {0, 1, 2}},
}


def spoiled(x):
    """The tensor with one axis longer or shorter by one, and which axis."""
    for axis in range(x.dim()):
        yield axis, torch.cat([x, x.narrow(axis, 0, 1)], axis) if x.size(axis) else x.new_zeros(x.size(0), 1)
        if x.size(axis):
            yield axis, x.narrow(axis, 1, x.size(axis) - 1).contiguous()


@pytest.mark.parametrize("name", CASES)
def test_wrong_shapes_are_refused(name, compiled, generator):
    """Each tensor in turn, where it alone does not fit."""
    compiled(True)
    assert usable(torch.zeros(1))
    op, free = getattr(torch.ops.seqstruct, name).default, FREE.get(name, {})
    for args in CASES[name](Draw(generator, torch.float64)):
        args = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
        for place, argument in enumerate(op._schema.arguments):
            if not isinstance(args[place], torch.Tensor):
                continue
            for axis, wrong in spoiled(args[place]):
                if axis in free.get(argument.name, ()):
                    continue
                given = [*args[:place], wrong, *args[place + 1 :]]
                with pytest.raises(ValueError, match="^expected "):
                    op(*given)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("superposition_step", {"next": 5}),
        ("superposition_step", {"next": -1}),
        ("superposition_step_backward", {"height": 4}),
        ("superposition_stack_backward", {"height": 5}),
        ("pushdown_step", {"done": 9}),
        ("pushdown_step", {"kind": 3}),
        ("pushdown_step", {"states": 0}),
        ("pushdown_step", {"chunk": 0}),
        ("pushdown_step", {"order": torch.full((91,), 91)}),
        ("pushdown_step", {"controls": None}),
        ("pushdown_step_backward", {"now": 3}),
        ("bounded_memory_step", {"order": torch.tensor([0, 2])}),
        ("linear_attention", {"kind": 4}),
        ("linear_attention", {"kind": 1}),
        ("linear_attention_step", {"order": torch.tensor([-1, 0])}),
        ("linear_attention_step", {"value": None}),
        ("chain_marginals", {"lengths": torch.tensor([0, T + 1])}),
        ("projective_marginals", {"lengths": torch.tensor([-1, 0])}),
        ("spanning_marginals", {"lengths": torch.tensor([T, 0])}),
        ("constituency_marginals", {"lengths": torch.tensor([T + 1, 0])}),
        ("constituency_marginals", {"spans": torch.zeros(B, T, T, 0)}),
        ("delta_rule", {"steps": 0}),
        ("delta_rule", {"steps": 3}),
        ("delta_rule", {"log_decay": torch.zeros(B, H, 2, D, dtype=torch.float64)}),
        ("softmax_attention", {"dropout": 1.0}),
        ("softmax_attention", {"visible": torch.ones(B, 2 * H, T, T)}),
        ("softmax_attention", {"key": torch.zeros(B, 3, T, D, dtype=torch.float64)}),
        ("dropped", {"share": -0.1}),
    ],
)
def test_wrong_numbers_are_refused(name, change, compiled, generator):
    compiled(True)
    assert usable(torch.zeros(1))
    op, ((wanted, value),) = getattr(torch.ops.seqstruct, name).default, change.items()
    *_, args = CASES[name](Draw(generator, torch.float64))
    args = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
    names = [x.name for x in op._schema.arguments]
    args[names.index(wanted)] = value
    with pytest.raises(ValueError, match="^expected "):
        op(*args)
