"""Stack attention, beside softmax attention, the authors' layers and a whole training step of a plain Transformer.

The unit u is one training step (forward, backward, clipping, Adam) of a `torch.nn.TransformerEncoder` language model
of the CFL configuration of DuSell and Chiang (2024): 5 layers of size 32, 4 heads, feedforward 64, dropout 0.1,
length 80, batch 10, float32, on the same device.  Dropout of attention weights keeps torch from its fused kernel, so
the same step without any stands beside the unit, and nothing else that is timed here has any.  Layers are whole
attention layers, projections included.  `peak MB` is what a forward and backward pass adds at most, `operators` how
many torch operators it calls, views among them.

Training steps are those of the models of appendix D there, for context-free languages, no dropout.  The layers of the
authors' own packages, `rau` or the paper's released code, take part where one is importable.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from statistics import median
from types import SimpleNamespace

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor, nn

from seqstruct.attention.base import Attention, Shape, Site
from seqstruct.attention.registry import get_attention, make_config
from seqstruct.benchmarks.peers import EXTRA, version
from seqstruct.benchmarks.timing import Contestant, Place, audit, heading, made_up_task, measure, megabytes
from seqstruct.command import text_table
from seqstruct.models.language_models import stack_lstm_lm
from seqstruct.models.language_models.stack_lstm_lm import StackLSTMLanguageModel
from seqstruct.models.transformer.lm import StructuredTransformerLanguageModel, StructuredTransformerLanguageModelConfig

PACKAGES = ("rau.models.stack_nn.transformer", "stack_attention")  # the authors'
MODEL, HEADS, BATCH, UNIT_LENGTH, VOCABULARY = 32, 4, 10, 80, 5
UNIT = "plain Transformer step, length 80"
UNITS = {UNIT: 0.1, f"{UNIT}, no dropout": 0.0}
LAYERS = {
    "softmax": ("softmax", {}),
    "superposition m=32": ("superposition_stack", {"size": 32}),
    "nondeterministic Q=2 S=3 m=5": ("nondeterministic_stack", {"states": 2, "symbols": 3, "size": 5}),
    "nondeterministic Q=3 S=3 m=5": ("nondeterministic_stack", {"states": 3, "symbols": 3, "size": 5}),
}
GROWTH = [40, 80, 160, 320, 640]
GROWING = ["softmax", "superposition m=32", "nondeterministic Q=2 S=3 m=5"]
DECODING = [32, 64, 128, 256, 512]
FEW = 3  # repeats of what takes long
NEAR = 4  # steps on either side of a length that stand for it
STORED = (
    "Stored: by softmax, keys and values of all steps, O(t); by the superposition stack, its t elements, O(t);\n"
    "by the nondeterministic stack, inner weights between all pairs of times, O(t^2), O(t) of them new at a step, and\n"
    "room for a quarter more steps; a step beyond its option max_length is refused."
)
SYMBOLS = "()[]"  # of the Dyck language
DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")
PLANS = {
    "Tf": (32, "softmax"),
    "Tf+Sup": (32, "softmax*2 + superposition_stack(size=32) + softmax*2"),
    "Tf+Nd Q=2": (28, "softmax*2 + nondeterministic_stack(states=2, symbols=3, size=5) + softmax*2"),
    "Tf+Nd Q=3": (28, "softmax*2 + nondeterministic_stack(states=3, symbols=3, size=5) + softmax*2"),
}
STACKS = {
    "LSTM": ("lstm", "none"),
    "LSTM+Sup": ("sup", stack_lstm_lm.SUPERPOSITION),
    "LSTM+Nd Q=2": ("nd", stack_lstm_lm.NONDETERMINISTIC),
    "LSTM+Nd Q=3": ("nd", stack_lstm_lm.NONDETERMINISTIC.replace("states=2", "states=3")),
}


def run(
    lengths: Sequence[int] | None,
    repeats: int,
    sections: Sequence[str] | None = None,
    device: str = "cpu",
    dtype: str = "float32",
) -> str:
    """The tables of the sections (all by default), one under the other.

    lengths: in place of each section's own: of the layers, of training steps, to decode to, and of growth.
    Raises ValueError on a device or a data type that is not to be had.
    """
    place = Place.of(device, dtype)
    peers, note = peer_layers()
    tables = {
        "layers": lambda: "Layers\n" + beside_the_unit(
            "layer", lengths or [40, 80, 160], repeats, place, lambda length: layers(length, place, peers)),
        "steps": lambda: "Training steps: forward, backward, clipping, Adam\n" + beside_the_unit(
            "model", lengths or [UNIT_LENGTH], repeats, place, lambda length: training_steps(length, place)),
        "decoding": lambda: decoding_table(lengths or DECODING, min(repeats, FEW), place),
        "growth": lambda: growth_table(lengths or GROWTH, repeats, place),
    }
    title = heading(f"Stack attention, batch {BATCH}", place, repeats) + note
    return "\n\n".join([title, *(make() for name, make in tables.items() if not sections or name in sections)])


def peer_layers() -> tuple[dict[str, nn.Module], str]:
    """The authors' layers by label, modules from B T C to B T C; and a line that says whose they are, or why none."""
    for package in PACKAGES:
        try:
            superposition = import_module(f"{package}.superposition").SuperpositionStackAttention
            nondeterministic = import_module(f"{package}.nondeterministic").NondeterministicStackAttention
            block_size = import_module("torch_semiring_einsum").AutomaticBlockSize()
        except (ImportError, AttributeError):
            continue
        found: dict[str, nn.Module] = {f"{package}: superposition m=32": superposition(MODEL, 32)}
        for states in (2, 3):
            peer = nondeterministic(MODEL, states, 3, 5)
            peer.forward = partial(peer.forward, block_size=block_size)
            found[f"{package}: nondeterministic Q={states} S=3 m=5"] = peer
        for peer in found.values():
            peer.forward = partial(peer.forward, include_first=False)
        root = package.partition(".")[0]
        return found, f"beside the authors' layers: {package}, {root} {version(root, import_module(root))}"
    places = f"--peer FOLDER says where they are, {EXTRA} gets what they import"
    return {}, f"without the authors' layers, since neither {' nor '.join(PACKAGES)} can be imported: {places}"


def layers(length: int, place: Place, peers: dict[str, nn.Module]) -> dict[str, Contestant]:
    """Ours and the peers'."""
    ours = {label: layer(*choice, length, place) for label, choice in LAYERS.items()}
    return ours | {label: _contestant(peer, length, place) for label, peer in peers.items()}


HEADER = ["length", "forward ms", "forward+backward ms", "forward / u", "forward+backward / u", "peak MB", "operators"]


def beside_the_unit(
    what: str, lengths: Sequence[int], repeats: int, place: Place, make: Callable[[int], dict[str, Contestant]]
) -> str:
    """The table of what `make` gives for each length, in turn with the unit; what: the first heading."""
    rows = []
    for length in lengths:
        contestants = {name: plain_step(place, dropout) for name, dropout in UNITS.items()} | make(length)
        timings = measure(contestants, repeats)
        unit = timings[UNIT].both
        for name, timing in timings.items():
            found = audit(contestants[name])
            times = f"{timing.forward:.2f}", f"{timing.both:.2f}"
            ratios = f"{timing.forward / unit:.2f}", f"{timing.both / unit:.2f}"
            size = str(UNIT_LENGTH if name in UNITS else length)
            rows.append([name, size, *times, *ratios, f"{found.peak:.1f}", str(found.operators)])
    return text_table([what, *HEADER], rows)


def growth_table(lengths: Sequence[int], repeats: int, place: Place) -> str:
    """Forward and backward time by length, and the exponent between one length and the next."""
    rows, ordered = [], sorted(set(lengths))
    for label in GROWING:
        choice = LAYERS[label]
        last: tuple[int, float] | None = None
        for length in ordered:
            few = repeats if length <= 2 * UNIT_LENGTH else min(repeats, FEW)
            contestant = layer(*choice, length, place)
            both = measure({label: contestant}, few, warm_up=1)[label].both
            exponent = "" if last is None else f"{math.log(both / last[1]) / math.log(length / last[0]):.2f}"
            found = audit(contestant)
            rows.append([label, str(length), f"{both:.2f}", exponent, f"{found.peak:.1f}", str(found.operators)])
            last = (length, both)
    header = ["layer", "length", "forward+backward ms", "exponent", "peak MB", "operators"]
    return "Growth with the length; the exponent from the length before\n" + text_table(header, rows)


def layer(name: str, options: dict[str, int], length: int, place: Place | None = None) -> Contestant:
    """A causal self-attention layer on random inputs, the gradient taken for its parameters and its input."""
    module = _attention(name, options)
    forward = module.forward
    module.forward = lambda inputs: forward(inputs, inputs, inputs)[0].output
    return _contestant(module, length, place or Place.of("cpu", "float32"))


def _attention(name: str, options: dict[str, int]) -> Attention:
    return get_attention(name)(make_config(name, options), Shape.of(Site.DECODER_SELF, MODEL, HEADS))


def _contestant(module: nn.Module, length: int, place: Place) -> Contestant:
    generator = torch.Generator().manual_seed(1)
    module = module.to(place.device)
    inputs = torch.randn(BATCH, length, MODEL, generator=generator).to(place.device).requires_grad_()
    weights = torch.randn(BATCH, length, MODEL, generator=generator).to(place.device)

    def forward() -> Tensor:
        with place.precision():
            return place.finished(module(inputs))

    def backward(output: Tensor) -> None:
        for parameter in module.parameters():
            parameter.grad = None
        inputs.grad = None
        output.backward(weights.to(output.dtype))
        place.finished(output)

    return Contestant(forward, backward)


def plain_step(place: Place, dropout: float) -> Contestant:
    """The unit, or one of other dropout; its forward gives the loss, its backward the rest of the step."""
    one = nn.TransformerEncoderLayer(MODEL, HEADS, 2 * MODEL, dropout, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(one, 5, enable_nested_tensor=False)
    parts = nn.ModuleList([nn.Embedding(VOCABULARY, MODEL), encoder, nn.Linear(MODEL, VOCABULARY)]).to(place.device)
    mask = nn.Transformer.generate_square_subsequent_mask(UNIT_LENGTH, device=place.device)
    tokens = torch.randint(VOCABULARY, (BATCH, UNIT_LENGTH), generator=torch.Generator().manual_seed(1))
    tokens = tokens.to(place.device)

    def loss() -> Tensor:
        logits = parts[2](encoder(parts[0](tokens), mask=mask, is_causal=True))
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())

    return place.training_step(parts, loss)


def training_steps(length: int, place: Place) -> dict[str, Contestant]:
    """By the name of the model; the loss is the cross-entropy of random strings."""
    task = made_up_task(SYMBOLS)
    dictionary = task.source_dictionary
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(dictionary.nspecial, len(dictionary), (BATCH, length), generator=generator)
    given = torch.cat([torch.full((BATCH, 1), dictionary.bos()), tokens[:, :-1]], 1)
    models = {name: _transformer(task, *choice, length) for name, choice in PLANS.items()}
    models |= {name: _lstm(task, *choice) for name, choice in STACKS.items()}
    return {name: _step(model, given, tokens, place) for name, model in models.items()}


def _transformer(task: SimpleNamespace, embed_dim: int, plan: str, length: int) -> nn.Module:
    config = StructuredTransformerLanguageModelConfig(
        add_bos_token=True, tokens_per_sample=length, max_target_positions=length, tpu=False
    )
    preset = argparse.Namespace(decoder_embed_dim=embed_dim, **dict.fromkeys(DROPOUTS, 0.0))
    ARCH_CONFIG_REGISTRY["structured_transformer_lm_cfl"](preset)
    for name, value in {**vars(preset), "decoder_self_attention": plan}.items():
        setattr(config, name, value)
    return StructuredTransformerLanguageModel.build_model(config, task)


def _lstm(task: SimpleNamespace, preset: str, stack: str) -> nn.Module:
    config = argparse.Namespace(stack=stack)
    ARCH_CONFIG_REGISTRY[f"stack_lstm_lm_{preset}"](config)
    return StackLSTMLanguageModel.build_model(config, task)


def _step(model: nn.Module, given: Tensor, tokens: Tensor, place: Place) -> Contestant:
    model, given, tokens = model.to(place.device), given.to(place.device), tokens.to(place.device)

    def loss() -> Tensor:
        logits = model(given)[0]
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())

    return place.training_step(model, loss)


def decoding_table(lengths: Sequence[int], repeats: int, place: Place) -> str:
    """Through whole layers: time of a step at each length, of all steps up to it, and the state's size then."""
    rows, last = [], max(lengths)
    for label, choice in LAYERS.items():
        module = _attention(*choice).to(place.device).eval()
        runs = [decode(module, last + NEAR, lengths, place) for _ in range(1 + repeats)][1:]
        steps = [1e3 * median(times) for times in zip(*(times for times, _ in runs), strict=True)]
        for length in sorted(set(lengths)):
            near = median(steps[max(0, length - 1 - NEAR) : length + NEAR])
            size = runs[-1][1][length]
            rows.append([label, str(length), f"{near:.3f}", f"{sum(steps[:length]):.1f}", f"{size:.2f}"])
    header = ["layer", "length", "step ms", "all steps ms", "state MB"]
    return f"Decoding, one sequence, one step at a time\n{STORED}\n" + text_table(header, rows)


@torch.no_grad()
def decode(module: Attention, steps: int, lengths: Sequence[int], place: Place) -> tuple[list[float], dict[int, float]]:
    """Seconds of each step, and megabytes of the state after those many steps."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(1, steps, MODEL, generator=generator).to(place.device)
    times, sizes = [], {}
    with place.precision():
        state = module.initial_state(1)
        for t, given in enumerate(inputs.split(1, 1), 1):
            start = time.perf_counter()
            state = module.write(state, given, given)
            place.finished(module.read(state, given).output)
            times.append(time.perf_counter() - start)
            if t in lengths:
                sizes[t] = megabytes(state)
    return times, sizes
