"""Training steps and beam search of recurrent translation models, beside fairseq's own `lstm` and JoeyNMT's model.

Two layers of size 256 on each side, batches of 64 made-up sentences, vocabularies of 5,000, float32, no dropout; a step
is forward, loss and backward.  fairseq's model always feeds its features in; ours does where the row says so, and is
searched by the plugin's generator, fairseq's by its own.  Rows with sigmoid and segmentation attention show what these
cost beside simple attention (Kim et al. 2017, section 5).
JoeyNMT's rows are there where the package is; rows of matrix products alone say how fast a step could be at best.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.lstm import LSTMModel, base_architecture
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn

from seqstruct.benchmarks.timing import Contestant, Place, heading, made_up_task, measure, table, turns
from seqstruct.benchmarks.translation_peers import joeynmt_loss, joeynmt_model, joeynmt_search, matrix_products
from seqstruct.bridge.patches.beam_search import BeamSearchGenerator
from seqstruct.bridge.patches.compat import prepare_fairseq
from seqstruct.data.text.byte_symbols import SPECIAL
from seqstruct.models.rnn_translation.model import RecurrentTranslationConfig, RecurrentTranslationModel

SIZE, LAYERS, BATCH, VOCABULARY, BEAM = 256, 2, 64, 5000, 5
FAIRSEQ = "fairseq lstm (input feeding)"
JOEYNMT = "JoeyNMT (input feeding)"
PRODUCTS = {"products of luong alone": False, "products of luong, input feeding alone": True}
MODELS: dict[str, dict[str, Any]] = {
    "luong": {"cross_attention": "luong"},
    "luong, input feeding": {"cross_attention": "luong", "input_feeding": True},
    "softmax": {"cross_attention": "softmax"},
    "sigmoid": {"cross_attention": "sigmoid"},
    "segmentation": {"cross_attention": "segmentation"},
    "no attention": {"cross_attention": "none", "output": "plain"},
    "GRU, additive, previous state": {
        "cell": "gru", "cross_attention": "additive", "attention_query": "previous", "output": "maxout",
        "initial_state": "projected", "maxout_size": SIZE,
    },
}  # fmt: skip


def run(lengths: Sequence[int], repeats: int, device: str = "cpu") -> str:
    """The tables, one row for each model and length of source and target, 2 or more.

    Raises ValueError on a device that is not to be had.
    """
    place = Place.of(device, "float32")
    prepare_fairseq()
    task = made_up_task(f"w{number}" for number in range(VOCABULARY - SPECIAL))
    models = {FAIRSEQ: fairseq_model(task)} | {name: own_model(task, **o) for name, o in MODELS.items()}
    joeynmt = joeynmt_model(SIZE, LAYERS, VOCABULARY)
    for model in filter(None, (*models.values(), joeynmt)):
        model.to(place.device)
    steps, searches = [], []
    for length in lengths:
        source, target = (sentences(seed, length).to(place.device) for seed in (1, 2))
        contestants = {name: training(model, source, target) for name, model in models.items()}
        if joeynmt is not None:
            loss = partial(joeynmt_loss, joeynmt.train(), source, target)
            contestants[JOEYNMT] = Contestant(loss, partial(_backward, joeynmt))
        for name, feeding in PRODUCTS.items():
            contestants[name] = matrix_products(BATCH, length, SIZE, LAYERS, VOCABULARY, feeding, place.device)
        for name, timing in (timings := measure(contestants, repeats, place=place)).items():
            speed = timings[FAIRSEQ].both / timing.both
            steps.append([name, str(length), f"{timing.forward:.0f}", f"{timing.both:.0f}", f"{speed:.2f}",
                          f"{timing.kept:.0f}"])
        times = decoding(models, joeynmt, task.target_dictionary, source, repeats, place)
        for name, milliseconds in times.items():
            searches.append([name, str(length), f"{milliseconds:.0f}", f"{times[FAIRSEQ] / milliseconds:.2f}"])
    title = f"Recurrent translation, size {SIZE}, {LAYERS} layers, batch {BATCH}"
    head = heading(title, place, repeats, "fairseq", "JoeyNMT")
    header = ["training step", "length", "forward ms", "step ms", "times fairseq's speed", "kept MB"]
    decode = ["beam search", "length", "batch ms", "times fairseq's speed"]
    return head + table(header, steps) + f"\n\nBeam {BEAM}, as long as the source\n" + table(decode, searches)


def sentences(seed: int, length: int) -> Tensor:
    """Tokens B T, the last one of each the end of the sentence."""
    tokens = torch.randint(4, VOCABULARY, (BATCH, length), generator=torch.Generator().manual_seed(seed))
    tokens[:, -1] = 2
    return tokens


def own_model(task: Any, **options: Any) -> RecurrentTranslationModel:
    sizes = {"embed_dim": SIZE, "hidden_size": SIZE, "encoder_layers": LAYERS, "decoder_layers": LAYERS}
    config = RecurrentTranslationConfig(**{**sizes, "dropout": 0.0, **options})
    return RecurrentTranslationModel.build_model(config, task)


def fairseq_model(task: Any) -> LSTMModel:
    sizes = {f"{side}_{name}": SIZE for side in ("encoder", "decoder") for name in ("embed_dim", "hidden_size")}
    options = Namespace(
        **sizes, encoder_layers=LAYERS, decoder_layers=LAYERS, decoder_out_embed_dim=SIZE, dropout=0.0,
        criterion="cross_entropy", encoder_freeze_embed=False, decoder_freeze_embed=False, share_all_embeddings=False,
        max_source_positions=1024, max_target_positions=1024,
    )  # fmt: skip
    base_architecture(options)
    return LSTMModel.build_model(options, task)


def training(model: nn.Module, source: Tensor, target: Tensor) -> Contestant:
    """A step on one batch; fairseq's encoder wants the lengths."""
    model.train()
    previous = torch.cat([target[:, -1:], target[:, :-1]], 1)
    lengths = torch.full((len(source),), source.size(1), device=source.device)

    def forward() -> Tensor:
        logits = model(source, lengths, previous)[0]
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())

    return Contestant(forward, partial(_backward, model))


def _backward(model: nn.Module, loss: Tensor) -> None:
    model.zero_grad(set_to_none=True)
    loss.backward()


def decoding(
    models: dict[str, nn.Module], joeynmt: nn.Module | None, dictionary: Dictionary, source: Tensor, repeats: int,
    place: Place,
) -> dict[str, float]:
    """Milliseconds of a beam search over one batch, medians; every search runs to the source's length."""
    searches: dict[str, Callable[[], Any]] = {}
    for name, model in models.items():
        model.eval()
        length = source.size(1)
        kind = SequenceGenerator if name == FAIRSEQ else BeamSearchGenerator
        generator = kind([model], dictionary, beam_size=BEAM, max_len_a=0, max_len_b=length, min_len=length - 1)
        lengths = torch.full((len(source),), length, device=source.device)
        sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}
        searches[name] = lambda generator=generator, sample=sample: generator.generate([], sample)
    if joeynmt is not None:
        joeynmt.eval()
        searches[JOEYNMT] = lambda: joeynmt_search(joeynmt, source, BEAM)
    return turns(searches, repeats, warm_up=1, place=place)
