"""Training steps and beam search of recurrent translation models, beside fairseq's own `lstm` and JoeyNMT's model.

Two layers of size 256 on each side, batches of 64 made-up sentences, vocabularies of 5,000, float32, no dropout; a step
is forward, loss and backward.  fairseq's model always feeds its features in; ours does where the row says so, and is
searched by the plugin's generator, fairseq's by its own.  Rows with sigmoid and segmentation attention show what these
cost beside simple attention (Kim et al. 2017, section 5).
JoeyNMT's rows are there where the package is; rows of matrix products alone say how fast a step could be at best.
JoeyNMT 2.3 reads sources in both directions, or fails; half the size in each gives its decoder a memory of the same
size.  It has input feeding always, and starts every layer of the decoder from one state.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.lstm import LSTMModel, base_architecture
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn

from seqstruct.benchmarks.timing import Contestant, Place, heading, made_up_task, measure, turns
from seqstruct.bridge.patches.beam_search import BeamSearchGenerator
from seqstruct.bridge.patches.compat import prepare_fairseq
from seqstruct.command import text_table
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
}


def run(lengths: Sequence[int], repeats: int, device: str = "cpu") -> str:
    """The tables, one row for each model and length of source and target, 2 or more.

    Raises ValueError on a device that is not to be had.
    """
    place = Place.of(device, "float32")
    prepare_fairseq()
    task = made_up_task(f"w{number}" for number in range(VOCABULARY - SPECIAL))
    models = {FAIRSEQ: fairseq_model(task)} | {name: own_model(task, **o) for name, o in MODELS.items()}
    models = {name: model.to(place.device) for name, model in {**models, **joeynmt_model()}.items()}
    steps, searches = [], []
    for length in lengths:
        source, target = (sentences(seed, length).to(place.device) for seed in (1, 2))
        contestants = {name: training(name, model, source, target) for name, model in models.items()}
        for name, feeding in PRODUCTS.items():
            contestants[name] = matrix_products(length, feeding, place.device)
        for name, timing in (timings := measure(contestants, repeats, place=place)).items():
            speed = timings[FAIRSEQ].both / timing.both
            steps.append([name, str(length), f"{timing.forward:.0f}", f"{timing.both:.0f}", f"{speed:.2f}",
                          f"{timing.kept:.0f}"])
        times = decoding(models, task.target_dictionary, source, repeats, place)
        for name, milliseconds in times.items():
            searches.append([name, str(length), f"{milliseconds:.0f}", f"{times[FAIRSEQ] / milliseconds:.2f}"])
    title = f"Recurrent translation, size {SIZE}, {LAYERS} layers, batch {BATCH}"
    head = heading(title, place, repeats, "fairseq", "JoeyNMT")
    header = ["training step", "length", "forward ms", "step ms", "times fairseq's speed", "kept MB"]
    decode = ["beam search", "length", "batch ms", "times fairseq's speed"]
    return head + text_table(header, steps) + f"\n\nBeam {BEAM}, as long as the source\n" + text_table(decode, searches)


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
    )
    base_architecture(options)
    return LSTMModel.build_model(options, task)


def training(name: str, model: nn.Module, source: Tensor, target: Tensor) -> Contestant:
    """A step on one batch without padding, B S and B T; fairseq's encoder wants the lengths."""
    model.train()
    previous = torch.cat([target[:, -1:], target[:, :-1]], 1)
    lengths = torch.full((len(source),), source.size(1), device=source.device)

    def forward() -> Tensor:
        logits = joeynmt_logits(model, source, previous) if name == JOEYNMT else model(source, lengths, previous)[0]
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())

    def backward(loss: Tensor) -> None:
        model.zero_grad(set_to_none=True)
        loss.backward()

    return Contestant(forward, backward)


def decoding(
    models: dict[str, nn.Module], dictionary: Dictionary, source: Tensor, repeats: int, place: Place
) -> dict[str, float]:
    """Milliseconds of a beam search over one batch, medians; every search runs to the source's length."""
    searches: dict[str, Callable[[], Any]] = {}
    for name, model in models.items():
        model.eval()
        if name == JOEYNMT:
            searches[name] = partial(joeynmt_search, model, source)
            continue
        length = source.size(1)
        kind = SequenceGenerator if name == FAIRSEQ else BeamSearchGenerator
        # JoeyNMT's length counts the end of sentence, fairseq's does not
        generator = kind([model], dictionary, beam_size=BEAM, max_len_a=0, max_len_b=length - 1, min_len=length - 1)
        lengths = torch.full((len(source),), length, device=source.device)
        sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}
        searches[name] = lambda generator=generator, sample=sample: generator.generate([], sample)
    return turns(searches, repeats, warm_up=1, place=place)


def joeynmt_model() -> dict[str, nn.Module]:
    """JoeyNMT's recurrent model without dropout by its name, nothing where the package is not installed.

    Entries 0 to 3 of its vocabularies are the special symbols of its own, 2 begins and 3 ends a sentence.
    """
    try:
        from joeynmt.model import build_model
        from joeynmt.vocabulary import Vocabulary
    except ImportError:
        return {}
    symbols = {"unk": 0, "pad": 1, "bos": 2, "eos": 3}
    special = SimpleNamespace(
        **{f"{name}_token": f"<{name}>" for name in symbols}, **{f"{name}_id": i for name, i in symbols.items()},
        sep_token=None, lang_tags=[],
    )
    words = Vocabulary([f"w{number}" for number in range(VOCABULARY - len(symbols))], special)
    common = {"type": "recurrent", "rnn_type": "lstm", "embeddings": {"embedding_dim": SIZE}, "num_layers": LAYERS,
              "dropout": 0.0}
    options = {
        "encoder": {**common, "hidden_size": SIZE // 2, "bidirectional": True},
        "decoder": {**common, "hidden_size": SIZE, "attention": "luong", "input_feeding": True, "init_hidden": "last",
                    "hidden_dropout": 0.0},
    }
    return {JOEYNMT: build_model(options, words, words)}


def joeynmt_logits(model: nn.Module, source: Tensor, previous: Tensor) -> Tensor:
    """B T N of sources B S and the targets' tokens before B T."""
    return model.decoder(model.trg_embed(previous), *_joeynmt_encoding(model, source), previous.size(1))[0]


def joeynmt_search(model: nn.Module, source: Tensor) -> None:
    """Its beam search, as long as the source for every sentence."""
    from joeynmt.search import beam_search

    length = source.size(1)
    with torch.no_grad():
        memory, last, mask = _joeynmt_encoding(model, source)
        beam_search(
            model=model, beam_size=BEAM, encoder_output=memory, encoder_hidden=last, src_mask=mask,
            max_output_length=length, min_output_length=length - 1, alpha=-1,
        )


def _joeynmt_encoding(model: nn.Module, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    mask = torch.ones(len(source), 1, source.size(1), dtype=torch.bool, device=source.device)
    lengths = torch.full((len(source),), source.size(1), device=source.device)
    memory, last = model.encoder(model.src_embed(source), lengths, mask)
    return memory, last, mask


def matrix_products(length: int, feeding: bool, device: torch.device) -> Contestant:
    """The matrix products of a step of Luong's model (score `general`) with nothing between them: a bound on its speed.

    What can be one product over all steps is one: all gradients of weights, the inputs of layers, and, without input
    feeding, the attention's layers.  The attention's products with single sentences are left out.
    """
    layers, joined = LAYERS * [(SIZE, 4 * SIZE)], [(2 * SIZE, SIZE)]
    whole = [*layers, (SIZE, SIZE), (SIZE, VOCABULARY)] + (layers[:1] if feeding else layers + joined)
    steps = layers + (LAYERS * [(2 * SIZE, 4 * SIZE)] + joined if feeding else layers)
    rows = BATCH * length
    operands = {n: torch.ones(rows, n, device=device) for pair in whole + steps for n in pair}
    weights = {pair: torch.ones(pair, device=device) for pair in whole + steps}
    parts = [slice(start, start + BATCH) for start in range(0, rows, BATCH)]

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
