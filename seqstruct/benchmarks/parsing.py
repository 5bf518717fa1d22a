"""Training steps of parsers, beside supar's CRF parser of equal size, and what SPIGOT's projection costs of a step.

Each step takes the forward pass, the backward pass, clipping and Adam.  All have two layers of 200 units in each
direction, words of size 100 and tags of size 50 (supar's embeddings of both have size 100), scorers of 100 units, and
no dropout.  supar's is its unlabeled part: biaffine scores and the likelihood of projective trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from seqstruct.benchmarks import peers
from seqstruct.benchmarks.timing import Contestant, Place, heading, measure, turns
from seqstruct.command import text_table
from seqstruct.layers.parsing import graph_hinge, tree_hinge, tree_likelihood_loss, word_mask
from seqstruct.models.parsing.joint_parser import JointParser, JointParserConfig
from seqstruct.ops.trees import project_dependencies

BATCH, WORDS, TAGS, LABELS = 32, 5000, 40, 40


def run(lengths: Sequence[int], repeats: int, device: str = "cpu") -> str:
    """Raises ValueError on a device that is not to be had."""
    rows, notes, place = [], [], Place.of(device, "float32")
    for length in lengths:
        sample = {name: given.to(place.device) for name, given in draw(length).items()}
        contestants = {
            "tree, hinge": tree_step(sample, tree_hinge, place),
            "tree, likelihood": tree_step(sample, tree_likelihood_loss, place),
        }
        for gradient in ("pipeline", "ste", "spigot"):
            contestants[f"graph over tree, {gradient}"] = graph_step(sample, gradient, place)
        if peers.peer("supar") is not None:
            contestants["supar, tree, likelihood"] = supar_step(sample, place)
        timings = measure(contestants, repeats, place=place)
        for name, timing in timings.items():
            rate = 1e3 * BATCH / timing.both
            rows.append([name, str(length), f"{timing.both:.1f}", f"{rate:.0f}"])
        projection = project_time(sample, repeats, place)
        share = 100 * projection / timings["graph over tree, spigot"].both
        notes.append(f"projection at length {length}: {projection:.2f} ms, {share:.1f} % of SPIGOT's step")
    header = ["parser", "length", "ms a step", "sentences a second"]
    head = heading(f"Training steps of parsers, batches of {BATCH}", place, repeats, "supar")
    return "\n".join([head + text_table(header, rows), *notes])


def draw(length: int) -> dict[str, Tensor]:
    """A batch as the task gives it: a chain of heads, and a graph with an arc from each word to the next."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(4, TAGS, (BATCH, 3, length + 1), generator=generator)
    tokens[:, 0] = torch.randint(4, WORDS, (BATCH, length + 1), generator=generator)
    arcs = torch.full((BATCH, length + 1, length + 1), -1)
    step = torch.arange(length)
    arcs[:, step, step + 1] = torch.randint(1, LABELS, (BATCH, length), generator=generator)
    arcs[:, 0, 1] = 0
    return {
        "tokens": tokens, "padding_mask": torch.zeros(BATCH, length + 1, dtype=torch.bool),
        "heads": step.expand(BATCH, -1), "arcs": arcs,
    }


def parser(kinds: dict[str, str], **options: Any) -> JointParser:
    torch.manual_seed(1)
    labels = {name: LABELS for name, kind in kinds.items() if kind == "graphs"}
    deterministic = {name: torch.zeros(LABELS, dtype=torch.bool) for name in labels}
    return JointParser(
        JointParserConfig(lemma_dim=0, **options), kinds=kinds, labels=labels, deterministic=deterministic,
        entries=(WORDS, TAGS, TAGS), padding=1,
    )


def tree_step(sample: dict[str, Tensor], loss: Callable[..., Tensor], place: Place) -> Contestant:
    model = parser({"trees": "trees"}).to(place.device)

    def value() -> Tensor:
        arcs = model.parse_trees(sample["tokens"], sample["padding_mask"]).arcs
        return loss(arcs, sample["heads"], sample["padding_mask"]).sum() / BATCH

    return place.training_step(model, value)


def graph_step(sample: dict[str, Tensor], gradient: str, place: Place) -> Contestant:
    model = parser({"trees": "trees", "graphs": "graphs"}, intermediate="tree", gradient=gradient).to(place.device)

    def value() -> Tensor:
        found = model.parse_graphs(sample["tokens"], sample["padding_mask"], name="graphs")
        loss = graph_hinge(found.heads, found.arcs, found.labels, found.possible, sample["arcs"])
        return loss.sum() / BATCH

    return place.training_step(model, value)


def project_time(sample: dict[str, Tensor], repeats: int, place: Place) -> float:
    """Milliseconds of one projection of a batch's arcs."""
    N = sample["tokens"].size(2)
    point = torch.randn(BATCH, N, N, generator=torch.Generator().manual_seed(2)).to(place.device)
    step = {"": lambda: project_dependencies(point, word_mask(sample["padding_mask"]))}
    return turns(step, repeats, place=place)[""]


def supar_step(sample: dict[str, Tensor], place: Place) -> Contestant:
    """supar's projective CRF parser over arcs alone."""
    structs, supar = import_module("supar.structs"), import_module("supar.models.dep")
    torch.manual_seed(1)
    model: nn.Module = supar.CRFDependencyModel(
        n_words=WORDS, n_rels=2, n_tags=TAGS, feat=["tag"], n_embed=100, n_feat_embed=100, n_pretrained=100,
        n_lstm_hidden=200, n_lstm_layers=2, n_arc_mlp=100, n_rel_mlp=1, embed_dropout=0.0, encoder_dropout=0.0,
        mlp_dropout=0.0, proj=True,
    ).to(place.device)
    words, tags = sample["tokens"][:, 0], sample["tokens"][:, 2]
    mask = torch.ones_like(words, dtype=torch.bool)
    mask[:, 0] = False
    heads = torch.nn.functional.pad(sample["heads"], (1, 0))

    def value() -> Tensor:
        scores, _ = model(words, [tags])
        return -structs.DependencyCRF(scores, mask.sum(-1)).log_prob(heads).sum() / BATCH

    return place.training_step(model, value)
