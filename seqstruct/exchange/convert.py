"""From a model of transformers to a folder of the same with other attention, fitted where there is text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor

from seqstruct.data.files import new_folder, read_json, undamaged
from seqstruct.exchange.saved import CONFIGURATION, check_shapes, read_shapes
from seqstruct.exchange.text_blocks import STEPS, batches, blocks, milliseconds, perplexity
from seqstruct.hf.exchanged import falling, losses_at_swap, swap_attention, transfer, tune
from seqstruct.hf.exchanged.swap import EXCHANGED
from seqstruct.scoring.measurement import Measurement


@dataclass(frozen=True)
class Fitting:
    """How what was exchanged is trained, on blocks of text.

    text, valid: files; valid is what perplexities are of.  transfer, tune: updates of attention transfer and of all.
    length: tokens of a block.  batch_size: blocks of an update.  transfer_rate, rate: of learning.
    """

    text: str | None = None
    valid: str | None = None
    transfer: int = 0
    tune: int = 0
    length: int = 256
    batch_size: int = 8
    transfer_rate: float = 1e-3
    rate: float = 5e-4

    def __post_init__(self) -> None:
        if min(self.transfer, self.tune) < 0 or self.length < 2 or self.batch_size < 1:
            raise ValueError("expected updates of 0 or more, blocks of 2 tokens or more, of which the first is not "
                             "predicted, and batches of 1 or more")
        if (self.transfer or self.tune) and not self.text:
            raise ValueError("attention transfer and tuning need a text")


def convert(
    name: str | os.PathLike, plan: str, out: str | os.PathLike, fitting: Fitting = Fitting(), *, seed: int = 1,
    decode: int = 0, texts: int = 16,
) -> tuple[list[str], list[Measurement]]:
    """Write a new folder `out`: what could not be taken over, in sentences, and what was measured come back.

    name: of a GPT-2, Llama or BERT of transformers.  decode: the length after which a step of decoding `texts` texts
    is timed, 0 for none.  Perplexities are of a token, before the swap, at it, after transfer and after tuning.
    Raises ValueError on another model, what `swap_attention` and `new_folder` do, where texts are longer than the model
    has positions, and where BERT, which predicts no next token, is to be tuned or measured.
    """
    if decode < 0 or texts < 1:
        raise ValueError(f"expected to decode after 0 tokens or more, and 1 text or more, got {decode} and {texts}")
    model = load(name).eval()
    causal, tokenizer = model.can_generate(), _tokenizer(name, bool(fitting.text or fitting.valid))
    if not causal and (fitting.tune or fitting.valid or decode):
        raise ValueError(f"{type(model).__name__}: expected a language model to tune, to measure and to decode with; "
                         "attention transfer alone needs none")
    longest = max(fitting.length if fitting.text or fitting.valid else 0, decode + STEPS if decode else 0)
    if longest > model.config.max_position_embeddings:
        raise ValueError(f"{name}: expected at most {model.config.max_position_embeddings} tokens, as the model has "
                         f"positions, got {longest}")
    measured: list[Measurement] = []
    valid = blocks(tokenizer, fitting.valid, fitting.length) if fitting.valid else None

    def measure(what: str, model: Any) -> None:
        if valid is not None:
            measured.append(Measurement(what, perplexity(model, valid, fitting.batch_size), "perplexity"))

    with new_folder(out) as folder, torch.random.fork_rng():
        torch.manual_seed(seed)
        made = swap_attention(model, plan)
        measure("validation_perplexity_softmax", model)
        measure("validation_perplexity_at_swap", made)
        text = blocks(tokenizer, fitting.text, fitting.length) if fitting.text else torch.zeros(0)
        _fit(model, made, text, fitting, seed, measure)
        measured += recovered(measured)
        if decode:
            measured += _times(model, made, decode, texts)
        made.save_pretrained(folder)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
    return losses_at_swap(made), measured


def load(name: str | os.PathLike) -> Any:
    """A model of transformers of a class that attention can be exchanged in; ValueError on others and damaged ones, and
    those that lack weights, which transformers would draw at random."""
    import transformers

    folder = Path(name)
    if (folder / CONFIGURATION).is_file():
        read_json(folder / CONFIGURATION)
    found = {path: read_shapes(path) for path in sorted(folder.glob("*.safetensors"))}
    try:
        with undamaged(folder / CONFIGURATION, StrictDataclassError):
            config = transformers.AutoConfig.from_pretrained(name)
    except OSError:
        raise ValueError(f"{name}: no model of transformers, neither a folder nor, as far as can be seen, on the hub"
                         ) from None
    known = [architecture for architecture in config.architectures or () if architecture in EXCHANGED]
    if not known:
        raise ValueError(f"{name}: expected one of {', '.join(EXCHANGED)}, got {config.architectures or 'no name'}")
    kind = getattr(transformers, known[0])
    if found:
        with torch.device("meta"):
            expected = kind(config).state_dict()
        inner = f"{kind.base_model_prefix}."  # which files of a model without head lack
        expected |= {key.removeprefix(inner): value for key, value in expected.items()}
        for path, shapes in found.items():
            check_shapes(path, shapes, expected)
    model, loading = kind.from_pretrained(name, output_loading_info=True)
    if lacking := sorted(loading["missing_keys"]):
        raise ValueError(f"{name}: expected {lacking[0]} and {len(lacking) - 1} others, which its files lack")
    return model


def recovered(perplexities: Sequence[Measurement]) -> list[Measurement]:
    """Shares of the perplexity lost at the swap that transfer, and all training, win back; none where either lacks."""
    found = {each.metric.removeprefix("validation_perplexity"): each.value for each in perplexities}
    before, swapped = found.get("_softmax", 0.0), found.get("_at_swap", 0.0)
    shares = {"recovered_by_transfer": found.get("_transferred"), "recovered": found.get("")}
    return [
        Measurement(name, (swapped - after) / (swapped - before), "share")
        for name, after in shares.items()
        if after is not None and "_transferred" in found and swapped > before
    ]


def _fit(model: Any, made: Any, text: Tensor, fitting: Fitting, seed: int, measure: Any) -> None:
    size = fitting.batch_size
    if fitting.transfer:
        drawn = batches(text, size, fitting.transfer, seed, "attention transfer", labels=False)
        transfer(model, made, drawn, fitting.transfer_rate, falling(fitting.transfer))
        if made.can_generate():
            measure("validation_perplexity_transferred", made)
    if fitting.tune:
        drawn = batches(text, size, fitting.tune, seed + 1, "tuning")
        tune(made, drawn, fitting.rate, falling(fitting.tune, fitting.tune // 10))
        measure("validation_perplexity", made)


def _times(model: Any, made: Any, length: int, texts: int) -> list[Measurement]:
    taken = milliseconds({"softmax": model, "exchanged": made}, length, texts)
    return [
        Measurement("step_softmax", taken["softmax"], "ms"),
        Measurement("step", taken["exchanged"], "ms"),
        Measurement("speed_up", taken["softmax"] / taken["exchanged"], "times softmax"),
    ]


def _tokenizer(name: str | os.PathLike, needed: bool) -> Any:
    """The model's, None where there is none; ValueError if there is text that needs it."""
    from transformers import AutoTokenizer

    import seqstruct.hf  # noqa: F401  registers the library's own

    try:
        return AutoTokenizer.from_pretrained(Path(name) if Path(name).is_dir() else name)
    except (OSError, ValueError) as error:
        if needed:
            raise ValueError(f"{name}: expected a tokenizer beside the model, since there is a text: "
                             f"{' '.join(str(error).split())}") from None
        return None
