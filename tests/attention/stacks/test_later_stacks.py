"""Stack attention of later forms: what its controllers make of hidden states."""

from __future__ import annotations

import copy

import pytest
import torch

from seqstruct.attention import Shape, Site, get_attention, make_config


def build(name, options, generator):
    attention = get_attention(name)(make_config(name, options), Shape.of(Site.DECODER_SELF, 6, 2)).double()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return attention


def test_strong_controls_make_a_list_of_the_stratification_stack(generator):
    """Controls of 60 saturate the logistic function: the reading is the top of a list, popped, then pushed to."""
    attention = build("stratification_stack", {"size": 4}, generator)
    x = torch.randn(1, 13, 6, generator=generator, dtype=torch.float64)
    controls = torch.randint(2, (2, 13), generator=generator)
    x[0, :, :2] = 2.0 * controls.T - 1
    with torch.no_grad():
        for feature, layer in enumerate((attention.push_layer, attention.pop_layer)):
            layer.bias.zero_()
            layer.weight.zero_()[0, feature] = 60
    output = attention(x, x, x)[0].output
    pushed, stack = attention.pushed_layer(x).tanh()[0], []
    for t, (push, pop) in enumerate(controls.T.tolist()):
        if pop and stack:
            stack.pop()
        if push:
            stack.append(pushed[t])
        top = stack[-1] if stack else torch.zeros(4, dtype=torch.float64)
        torch.testing.assert_close(output[0, t], attention.output_layer(top), rtol=0, atol=1e-12)


def test_gradients_of_strengths_are_close_in_half_types(generator):
    """Strengths in bfloat16 have elements end elsewhere: gradients of some draws were off by a sixth and more."""
    for _ in range(6):
        exact = build("stratification_stack", {"size": 4}, generator)
        near = copy.deepcopy(exact).bfloat16()
        exact.load_state_dict(near.state_dict())
        x, weights = (torch.randn(2, 103, 6, generator=generator).bfloat16() for _ in range(2))
        for attention, inputs in ((exact, x.double()), (near, x)):
            (attention(inputs, inputs, inputs)[0].output.double() * weights.double()).sum().backward()
        for layer in ("push_layer", "pop_layer"):
            found, expected = (getattr(attention, layer).weight.grad.double() for attention in (near, exact))
            assert (found - expected).norm() < 0.02 * expected.norm()


@pytest.mark.parametrize("height", [2, 5])
def test_strong_actions_make_lists_of_limited_height_of_the_state_stacks(generator, height):
    """Each head's stack is a list, what is pushed beyond the height falls off its bottom, and all cells are read."""
    attention = build("state_stack", {"height": height, "size": 3}, generator)
    x = torch.randn(1, 13, 6, generator=generator, dtype=torch.float64)
    actions = torch.randint(3, (13, 2), generator=generator)
    attention.action_layer.forward = lambda _: 2000 * torch.nn.functional.one_hot(actions, 3).double().flatten(1)[None]
    output, pushed = attention(x, x, x)[0].output, attention.pushed_layer(x).unflatten(-1, (2, 3))[0]
    queries, lists = attention.query_layer(x).unflatten(-1, (2, 3))[0], [[], []]
    for t in range(13):
        readings = []
        for head, cells in enumerate(lists):
            if actions[t, head] == 0:
                cells.insert(0, pushed[t, head])
                del cells[height:]
            elif actions[t, head] == 1 and cells:
                cells.pop(0)
            stack = torch.stack(cells + [torch.zeros(3, dtype=torch.float64)] * (height - len(cells)))
            shares = (stack @ queries[t, head] / 3**0.5 + attention.depth_bias[head]).softmax(0)
            readings.append(shares @ stack)
        torch.testing.assert_close(output[0, t], attention.output_layer(torch.cat(readings)), rtol=0, atol=1e-12)
