"""Decoders and encoders of today: rotary positions, grouped heads, RMS norms, SwiGLU, no biases, norms of queries and
keys, short convolutions and capped logits, through fairseq's own layers."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import nn

from seqstruct.bridge.checkpoints import load_checkpoint
from tests.models.building import dictionary_of, language_model_config, small_language_model, small_translation_model
from tests.models.front_door import fairseq, nearly_equal
from tests.randomised import randomised

MODERN = dict(
    rotary="all", rotary_base=50.0, qk_norm=True, no_biases=True, rms_norm=True, swiglu=True, decoder_kv_heads=1,
    logit_soft_cap=5.0, short_conv=3,
)
PUBLISHED = {  # vocabulary, size, inner size, layers, heads, of keys and values, tied; parameters
    "LLaMA 7B": (32000, 4096, 11008, 32, 32, 32, False, 6_738_415_616),
    "TinyLlama 1.1B": (32000, 2048, 5632, 22, 32, 4, False, 1_100_048_384),
    "Llama 3.2 1B": (128256, 2048, 8192, 16, 32, 8, True, 1_235_814_400),
}
DICTIONARY = dictionary_of("abcdefg")


def tokens(generator: torch.Generator, rows: int, length: int) -> torch.Tensor:
    return torch.randint(4, len(DICTIONARY), (rows, length), generator=generator)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_many_as_published(name: str) -> None:
    words, size, inner, layers, heads, kv_heads, tied, parameters = PUBLISHED[name]
    dictionary = dictionary_of(map(str, range(words - 4)))
    with torch.device("meta"):
        model = small_language_model(
            dictionary, decoder_embed_dim=size, decoder_ffn_embed_dim=inner, decoder_layers=layers,
            decoder_attention_heads=heads, decoder_kv_heads=kv_heads, share_decoder_input_output_embed=tied,
            rotary="all", no_biases=True, rms_norm=True, swiglu=True, no_scale_embedding=True,
        )
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


PLANS = {
    "all": "softmax + sliding_window(slots=3)",
    "hybrid": "softmax + delta",
    "stack": "sigmoid + superposition_stack(size=3)",
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("chunks", [1, 2])
def test_steps_of_a_language_model_are_its_parallel_form(plan: str, chunks: int, generator: torch.Generator) -> None:
    """Padding on the left, as prefixes have it, and rows that change places in the middle."""
    options = {**MODERN, "rotary": "all" if plan == "all" else "hybrid", "ffn_chunks": chunks}
    model = small_language_model(DICTIONARY, **options, decoder_self_attention=PLANS[plan])
    model = randomised(model, generator).double().eval().decoder
    read = tokens(generator, 3, 7)
    read[1, :2] = DICTIONARY.pad()
    order = torch.tensor([2, 0, 0])
    with torch.no_grad():
        whole = model(read)[0]
        incremental: dict = {}
        for t in range(7):
            if t == 4:
                model.reorder_incremental_state_scripting(incremental, order)
                read, whole = read[order], whole[order]
            step = model(read[:, : t + 1], incremental_state=incremental)[0][:, -1]
            real = read[:, t] != DICTIONARY.pad()
            torch.testing.assert_close(step[real], whole[real, t], rtol=1e-9, atol=1e-10)
    assert whole.abs().max() < MODERN["logit_soft_cap"]


def test_steps_of_a_translation_model_are_its_parallel_form(generator: torch.Generator) -> None:
    model = randomised(small_translation_model(DICTIONARY, **MODERN, encoder_kv_heads=1), generator).double().eval()
    source, target = tokens(generator, 3, 6), tokens(generator, 3, 5)
    source[2, :3] = DICTIONARY.pad()
    with torch.no_grad():
        encoded = model.encoder(source, torch.tensor([6, 6, 3]))
        alone = model.encoder(source[2:, 3:], torch.tensor([3]))
        torch.testing.assert_close(encoded["encoder_out"][0][3:, 2:], alone["encoder_out"][0])
        whole = model.decoder(target, encoded)[0]
        incremental: dict = {}
        for t in range(5):
            step = model.decoder(target[:, : t + 1], encoded, incremental_state=incremental)[0][:, -1]
            torch.testing.assert_close(step, whole[:, t], rtol=1e-9, atol=1e-10)


def test_what_the_options_build() -> None:
    model = small_translation_model(DICTIONARY, **MODERN, encoder_kv_heads=2)
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())
    assert not any(isinstance(module, nn.LayerNorm) for module in model.modules())
    assert model.encoder.embed_positions is model.decoder.embed_positions is None
    layer = model.decoder.layers[0]
    assert layer.fc1.out_features == 2 * layer.fc2.in_features
    attention = layer.self_attn.mechanism
    assert (attention.name, attention.weight.shape) == ("softmax", (3, 12))
    assert attention.mechanism.k_proj.out_features == 6
    assert layer.encoder_attn.mechanism.k_proj.out_features == 6
    assert layer.encoder_attn.mechanism.shape.slot.rotary_base is None


def test_the_cap_is_a_scaled_tangent(generator: torch.Generator) -> None:
    torch.manual_seed(1)
    capped = small_language_model(DICTIONARY, logit_soft_cap=0.5)
    free = small_language_model(DICTIONARY)
    free.load_state_dict(capped.state_dict())
    read = tokens(generator, 2, 5)
    logits, wanted = capped.eval()(read)[0], free.eval()(read)[0]
    torch.testing.assert_close(logits, 0.5 * torch.tanh(wanted / 0.5))
    assert wanted.abs().max() > 0.5


def test_what_cannot_come_cannot_with_a_cap_either(generator: torch.Generator) -> None:
    model = small_language_model(DICTIONARY, logit_soft_cap=0.5, compact_vocabulary=True)
    logits = model(tokens(generator, 2, 5))[0]
    assert (logits[..., [DICTIONARY.bos(), DICTIONARY.pad(), DICTIONARY.unk()]] == -torch.inf).all()
    logits.log_softmax(-1)[..., DICTIONARY.nspecial :].sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"rotary": "all", "decoder_self_attention": "softmax + delta"},
         "decoder_self attention, layer 1: delta takes no rotary positions.*--rotary hybrid"),
        ({"rotary": "hybrid", "interleaved_positions": True}, "not with --interleaved-positions"),
        ({"rotary": "all", "decoder_learned_pos": True}, "not with --decoder-learned-pos"),
        ({"interleaved_positions": True, "decoder_learned_pos": True}, "--decoder-learned-pos does not go with"),
        ({"compact_vocabulary": True, "adaptive_softmax_cutoff": "5"}, "neither shared nor adaptive ones"),
        ({"logit_soft_cap": 0.0}, "--logit-soft-cap is a finite number above 0, not 0.0"),
        ({"logit_soft_cap": 3.0, "adaptive_softmax_cutoff": "5"}, "does not go with --adaptive-softmax-cutoff"),
    ],
)
def test_mistakes_are_told_in_a_sentence(options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        small_language_model(DICTIONARY, **options)


def test_presets_follow_the_given_size() -> None:
    given = argparse.Namespace(decoder_embed_dim=96)
    ARCH_CONFIG_REGISTRY["structured_transformer_lm_modern"](given)
    assert (given.decoder_ffn_embed_dim, given.decoder_kv_heads, given.rotary) == (256, 4, "all")
    both = argparse.Namespace(rotary="hybrid", encoder_kv_heads=1)
    ARCH_CONFIG_REGISTRY["structured_transformer_modern"](both)
    assert (both.encoder_kv_heads, both.decoder_kv_heads, both.rotary) == (1, 4, "hybrid")
    assert both.encoder_ffn_embed_dim == both.decoder_ffn_embed_dim == 1408


def test_options_are_off_where_nothing_is_said() -> None:
    torch.manual_seed(3)
    one = small_language_model(DICTIONARY)
    torch.manual_seed(3)
    other = small_language_model(DICTIONARY, rotary="none", rotary_base=7.0, decoder_kv_heads=2)
    assert language_model_config().rotary == "none"
    for (name, value), (other_name, same) in zip(one.state_dict().items(), other.state_dict().items(), strict=True):
        assert name == other_name
        assert torch.equal(value, same)


TRAIN = [
    "--optimizer", "adam", "--lr", 0.01, "--update-epoch-batch-itr", "True", "--no-epoch-checkpoints", "--dropout", 0.1,
    "--short-conv", 3, "--logit-soft-cap", 30,
]
SIZES = ["-embed-dim", 24, "-attention-heads", 2, "-kv-heads", 1, "-layers", 2]


def side(name: str) -> list:
    return [f"--{name}{option}" if i % 2 == 0 else option for i, option in enumerate(SIZES)]


@pytest.mark.training
def test_a_preset_trains_resumes_to_the_bit_and_decodes_with_beams(reversals: Path, tmp_path: Path) -> None:
    """A translator that learns to copy backwards, with a memory beside softmax."""
    options = [
        "train", reversals / "bin", *TRAIN, *side("encoder"), *side("decoder"), "--arch",
        "structured_transformer_modern", "--rotary", "hybrid", "--decoder-self-attention", "softmax + gated_delta",
        "--max-tokens", 150, "--share-decoder-input-output-embed", "--criterion", "cross_entropy",
    ]
    log = fairseq(*options, "--max-epoch", 12, "--save-dir", tmp_path / "whole")
    losses = [float(loss) for loss in re.findall(r"valid on 'valid' subset.*?\| loss ([\d.]+)", log)]
    assert len(losses) == 12
    assert losses[-1] < 0.9 * losses[0]
    for epochs in (5, 12):
        fairseq(*options, "--max-epoch", epochs, "--save-dir", tmp_path / "parts")
    whole, parts = (load_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"] for name in ("whole", "parts"))
    assert all(torch.equal(value, parts[name]) for name, value in whole.items())
    decode = [reversals / "bin", "--path", tmp_path / "whole/checkpoint_last.pt", "--max-len-b", 12]
    texts = [fairseq("generate", *decode, "--beam", 4, "--max-tokens", size) for size in (40, 400)]
    hypotheses = [sorted(re.findall(r"^D-(\d+)\t\S+\t(.*)$", text, re.MULTILINE)) for text in texts]
    assert len(hypotheses[0]) == 60
    assert nearly_equal(*hypotheses)  # whatever the padding of a batch


@pytest.mark.training
def test_the_language_model_s_preset_trains_and_is_evaluated(reversals: Path, tmp_path: Path) -> None:
    log = fairseq(
        "train", reversals / "lm", *TRAIN, "--task", "language_modeling", "--arch", "structured_transformer_lm_modern",
        *side("decoder"), "--tokens-per-sample", 16, "--sample-break-mode", "eos", "--batch-size", 20, "--max-epoch", 6,
        "--save-dir", tmp_path,
    )
    losses = [float(loss) for loss in re.findall(r"valid on 'valid' subset.*?\| loss ([\d.]+)", log)]
    assert losses[-1] < losses[0]  # words are drawn at random: there is little to learn
    said = fairseq("eval-lm", reversals / "lm", "--path", tmp_path / "checkpoint_last.pt", "--gen-subset", "valid",
                   "--batch-size", 7, "--sample-break-mode", "eos")
    evaluated = float(re.search(r"Loss \(base 2\): ([\d.]+)", said).group(1))
    assert abs(evaluated - losses[-1]) < 0.01
