"""The layers of DuSell and Chiang's own packages, where one is importable: `rau`, or the paper's released code."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from torch import nn

from seqstruct.benchmarks.peers import EXTRA, version

PACKAGES = ("rau.models.stack_nn.transformer", "stack_attention")


def peer_layers(embed_dim: int) -> tuple[dict[str, nn.Module], str]:
    """Their layers by label, each a module from B T C to B T C, and one line that says whose they are, or that there
    are none.
    """
    for package in PACKAGES:
        try:
            superposition = import_module(f"{package}.superposition").SuperpositionStackAttention
            nondeterministic = import_module(f"{package}.nondeterministic").NondeterministicStackAttention
            block_size = import_module("torch_semiring_einsum").AutomaticBlockSize()
        except (ImportError, AttributeError):
            continue
        found: dict[str, nn.Module] = {f"{package}: superposition m=32": superposition(embed_dim, 32)}
        for states in (2, 3):
            peer = nondeterministic(embed_dim, states, 3, 5)
            peer.forward = partial(peer.forward, block_size=block_size)
            found[f"{package}: nondeterministic Q={states} S=3 m=5"] = peer
        for peer in found.values():
            peer.forward = partial(peer.forward, include_first=False)
        root = package.partition(".")[0]
        return found, f"beside the authors' layers: {package}, {root} {version(root, import_module(root))}"
    places = f"--peer FOLDER says where they are, {EXTRA} gets what they import"
    return {}, f"without the authors' layers, since neither {' nor '.join(PACKAGES)} can be imported: {places}"
