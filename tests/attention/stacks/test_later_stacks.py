"""Stack attention of later forms: what its controllers make of hidden states."""

from __future__ import annotations

import pytest
import torch

from seqstruct.attention import Shape, Site, get_attention, make_config


def build(name, options, generator, dim=6, heads=2):
    attention = get_attention(name)(make_config(name, options), Shape.of(Site.DECODER_SELF, dim, heads)).double()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return attention


def test_strong_controls_make_a_list_of_the_stratification_stack(generator):
    """Controls of 60 saturate the logistic function: the reading is the top of a list, popped, then pushed to."""
    attention = build("stratification_stack", {"size": 4}, generator)
    x = torch.randn(1, 13, 6, generator=generator, dtype=torch.float64)
    controls = torch.randint(2, (2, 13), generator=generator)
    signs = (120 * controls - 60).double()
    for layer, sign in zip((attention.push_layer, attention.pop_layer), signs, strict=True):
        layer.forward = lambda _, sign=sign: sign[None, :, None]
    output = attention(x, x, x)[0].output
    pushed, stack = attention.pushed_layer(x).tanh()[0], []
    for t, (push, pop) in enumerate(controls.T.tolist()):
        if pop and stack:
            stack.pop()
        if push:
            stack.append(pushed[t])
        top = stack[-1] if stack else torch.zeros(4, dtype=torch.float64)
        torch.testing.assert_close(output[0, t], attention.output_layer(top), rtol=0, atol=1e-12)


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
