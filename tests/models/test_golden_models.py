"""Whole language models against logits and gradients of the released code (Stack Attention, sec. 6, app. D)."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from seqstruct.layers.positions import InterleavedSinusoidalPositions
from tests.models.building import LANGUAGES, cfl_dictionary, language_model

GOLDEN = [
    ("Tf", "hardest-cfl", 3),
    ("Tf_Sup", "hardest-cfl", 3),
    ("Tf_Nd", "hardest-cfl", 3),
    ("Tf_Nd", "dyck", 2),
]


def translate(name: str, after_stack: bool) -> list[tuple[str, int | None]]:
    """Our parameters, with the third they take (None: the whole), for one of the reference's.

    The reference nests `first` and `second`: an embedding, softmax layers, perhaps a stack layer and softmax layers
    again, a final norm and the output layer; `after_stack` says whether the outermost group of layers is the latter.
    """
    kind = name.rsplit(".", 1)[1]
    if name.endswith("embedding_layer.embeddings"):
        return [("decoder.embed_tokens.weight", None)]
    if name.startswith("second.func.linear."):
        return [(f"decoder.output_projection.{kind}", None)]
    if name.startswith("first.second.func."):
        return [(f"decoder.layer_norm.{kind}", None)]
    if ".layers.layers." in name:
        return _softmax_layer(name, 3 if after_stack and name.startswith("first.first.second.") else 0)
    return [(_stack_layer(name), None)]


def _softmax_layer(name: str, below: int) -> list[tuple[str, int | None]]:
    number, part = name.split(".layers.layers.")[1].split(".", 1)
    prefix = f"decoder.layers.{int(number) + below}."
    names = {"linear1": "fc1", "linear2": "fc2", "norm1": "self_attn_layer_norm", "norm2": "final_layer_norm"}
    if part.startswith("self_attn.in_proj_"):
        kind = part.rsplit("_", 1)[1]
        return [(f"{prefix}self_attn.mechanism.{p}_proj.{kind}", i) for i, p in enumerate("qkv")]
    module, kind = part.rsplit(".", 1)
    if module == "self_attn.out_proj":
        return [(f"{prefix}self_attn.mechanism.out_proj.{kind}", None)]
    return [(f"{prefix}{names[module]}.{kind}", None)]


def _stack_layer(name: str) -> str:
    attention = "decoder.layers.2.self_attn.mechanism."
    feed_forward = ".second.second.wrapped_module." in f".{name}"
    kind = name.rsplit(".", 1)[1]
    ends = {
        "bottom_vector_logits": f"{attention}bottom",
        "action_layer.linear.weight": f"{attention}action_layer.weight",
        "input_to_pushed_vector_layer.linear.weight": f"{attention}pushed_layer.weight",
        "stack_reading_to_output_layer.linear.weight": f"{attention}output_layer.weight",
        "first.first.func." + kind: "decoder.layers.2."
        + ("final_layer_norm." if feed_forward else "self_attn_layer_norm.")
        + kind,
        "func.0.linear." + kind: f"decoder.layers.2.fc1.{kind}",
        "func.2.linear." + kind: f"decoder.layers.2.fc2.{kind}",
    }
    for end, own in ends.items():
        if name.endswith(end):
            return own
    raise KeyError(name)


def own_parameters(arrays: dict[str, np.ndarray], kind: str, which: str) -> dict[str, Tensor]:
    """The reference's `param.` or `grad.` arrays under our names."""
    found = {}
    for name, array in arrays.items():
        if not name.startswith(which):
            continue
        tensor = torch.from_numpy(array).double()
        for own, part in translate(name[len(which) :], after_stack=kind != "Tf"):
            if kind == "Tf_Nd":
                own = own.replace("action_layer", "transition_layer")
            found[own] = tensor if part is None else tensor.chunk(3)[part]
    return found


@pytest.mark.parametrize(("kind", "language", "states"), GOLDEN)
def test_logits_and_gradients(
    kind: str, language: str, states: int, golden: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = dict(np.load(golden("stack", f"model_{kind}_{language}.npz")))
    dictionary = cfl_dictionary(language)
    model = language_model(kind, dictionary, states).double().eval()
    wanted = own_parameters(arrays, kind, "param.")
    assert set(wanted) == {name for name, _ in model.named_parameters()}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(wanted[name])
    monkeypatch.setattr(torch, "get_default_dtype", lambda: torch.float64)
    model.decoder.embed_positions = InterleavedSinusoidalPositions(64, model.decoder.embed_dim, dictionary.pad())
    terminals = len(LANGUAGES[language])
    ids = torch.from_numpy(arrays["input_ids"])
    tokens = torch.where(ids == terminals, torch.tensor(dictionary.bos()), ids + dictionary.nspecial)
    logits = model(tokens)[0]
    order = [*range(dictionary.nspecial, len(dictionary)), dictionary.eos()]
    own = logits[..., order]
    torch.testing.assert_close(own, torch.from_numpy(arrays["logits"]), rtol=1e-9, atol=1e-9)
    others = [i for i in range(len(dictionary)) if i not in order]
    assert torch.isneginf(logits[..., others]).all()
    target = torch.from_numpy(arrays["target"])
    loss = torch.nn.functional.cross_entropy(own.flatten(0, 1), target.flatten(), reduction="sum") / len(target)
    torch.testing.assert_close(loss, torch.tensor(float(arrays["loss"]), dtype=torch.float64), rtol=1e-10, atol=0)
    loss.backward()
    gradients = own_parameters(arrays, kind, "grad.")
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            parameter.grad, gradients[name], rtol=1e-5, atol=2e-6, msg=lambda message, name=name: f"{name}: {message}"
        )
