"""What recurrent translation is measured beside: JoeyNMT's recurrent model, and matrix products that nobody can avoid.

JoeyNMT 2.3 reads sources in both directions, or fails; half the size in each gives its decoder a memory of the same
size.  It has input feeding always, and starts every layer of the decoder from one state.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor, nn

from seqstruct.benchmarks.timing import Contestant


def joeynmt_model(size: int, layers: int, vocabulary: int) -> nn.Module | None:
    """JoeyNMT's recurrent model without dropout, None where the package is not installed.

    Entries 0 to 3 of its vocabularies are the special symbols of its own, 2 begins and 3 ends a sentence.
    """
    try:
        from joeynmt.model import build_model
        from joeynmt.vocabulary import Vocabulary
    except ImportError:
        return None
    symbols = {"unk": 0, "pad": 1, "bos": 2, "eos": 3}
    special = SimpleNamespace(
        **{f"{name}_token": f"<{name}>" for name in symbols}, **{f"{name}_id": i for name, i in symbols.items()},
        sep_token=None, lang_tags=[],
    )  # fmt: skip
    words = Vocabulary([f"w{number}" for number in range(vocabulary - len(symbols))], special)
    common = {"type": "recurrent", "rnn_type": "lstm", "embeddings": {"embedding_dim": size}, "num_layers": layers,
              "dropout": 0.0}  # fmt: skip
    return build_model(
        {
            "encoder": {**common, "hidden_size": size // 2, "bidirectional": True},
            "decoder": {**common, "hidden_size": size, "attention": "luong", "input_feeding": True,
                        "init_hidden": "last", "hidden_dropout": 0.0},
        },
        words, words,
    )  # fmt: skip


def joeynmt_loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """The mean loss of a batch without padding; source, target: B S and B T."""
    previous = torch.cat([target[:, -1:], target[:, :-1]], 1)
    memory, last, mask = _joeynmt_encoding(model, source)
    decoder = model.decoder
    logits = decoder(model.trg_embed(previous), memory, last, mask, target.size(1))[0]
    return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def joeynmt_search(model: nn.Module, source: Tensor, beam: int) -> None:
    """Its beam search, as long as the source for every sentence."""
    from joeynmt.search import beam_search

    length = source.size(1)
    with torch.no_grad():
        memory, last, mask = _joeynmt_encoding(model, source)
        beam_search(
            model=model, beam_size=beam, encoder_output=memory, encoder_hidden=last, src_mask=mask,
            max_output_length=length, min_output_length=length - 1, alpha=-1,
        )  # fmt: skip


def _joeynmt_encoding(model: nn.Module, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    mask = torch.ones(len(source), 1, source.size(1), dtype=torch.bool, device=source.device)
    lengths = torch.full((len(source),), source.size(1), device=source.device)
    memory, last = model.encoder(model.src_embed(source), lengths, mask)
    return memory, last, mask


def matrix_products(
    batch: int, length: int, size: int, layers: int, vocabulary: int, feeding: bool, device: torch.device
) -> Contestant:
    """The matrix products of a step of Luong's model (score `general`) with nothing between them: a bound on its speed.

    What can be one product over all steps is one: all gradients of weights, the inputs of layers, and, without input
    feeding, the attention's layers.  The attention's products with single sentences are left out.
    """
    rows, gates = batch * length, 4 * size
    layer = [(size, gates)]
    whole = layers * layer + [(size, size), (size, vocabulary)]
    steps = layers * layer
    if feeding:
        whole += layer
        steps += layers * [(2 * size, gates)] + [(2 * size, size)]
    else:
        whole += layers * layer + [(2 * size, size)]
        steps += layers * layer
    operands = {n: torch.ones(rows, n, device=device) for pair in whole + steps for n in pair}
    weights = {pair: torch.ones(pair, device=device) for pair in whole + steps}
    parts = [slice(start, start + batch) for start in range(0, rows, batch)]

    def forward() -> Tensor:
        products = [operands[n] @ weights[n, m] for n, m in whole]
        for part in parts:
            for n, m in steps:
                operands[n][part] @ weights[n, m]
        return products[0]

    def backward(_: Tensor) -> None:
        for n, m in whole:
            operands[m] @ weights[n, m].t()
        for part in parts:
            for n, m in steps:
                operands[m][part] @ weights[n, m].t()
        for n, m in whole + steps:
            operands[n].t() @ operands[m]

    return Contestant(forward, backward)
