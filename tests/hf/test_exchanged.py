"""Models of transformers whose attention is exchanged: the same function where it is softmax, and fitted where not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from seqstruct.hf.exchanged import falling, losses_at_swap, swap_attention, transfer, tune

PLANS = ("t2r(features=9)", "softmax + rfa(features=16)", "retention*2", "linear + sliding_window(slots=3)")


def model_of(family: str, **options: Any) -> Any:
    """A tiny model with weights far from zero, from a seed of its own."""
    sizes = {"vocab_size": 31, "attn_implementation": "eager", "bos_token_id": None, "eos_token_id": None, **options}
    with torch.random.fork_rng():
        torch.manual_seed(5)
        if family == "gpt2":
            config = GPT2Config(n_embd=24, n_layer=2, n_head=2, n_positions=40, initializer_range=0.3, **sizes)
            return GPT2LMHeadModel(config).eval()
        sizes |= {"hidden_size": 24, "intermediate_size": 13, "num_hidden_layers": 2, "initializer_range": 0.3}
        if family == "llama":
            sizes = {"num_attention_heads": 4, "num_key_value_heads": 2, "rope_parameters":
                     {"rope_type": "default", "rope_theta": 500.0}, **sizes}
            return LlamaForCausalLM(LlamaConfig(**sizes)).eval()
        return BertForMaskedLM(BertConfig(num_attention_heads=2, **sizes)).eval()


def tokens_of(generator: torch.Generator, batch: int = 3, length: int = 13) -> torch.Tensor:
    return torch.randint(31, (batch, length), generator=generator)


FAMILIES = ("gpt2", "llama", "bert")
RIGHT = (torch.arange(13) < torch.tensor([13, 5, 1])[:, None]).long()


@pytest.mark.parametrize("family", FAMILIES)
def test_softmax_in_all_layers_is_the_same_model(family: str, generator: torch.Generator) -> None:
    model, tokens = model_of(family), tokens_of(generator)
    other = swap_attention(model, "softmax")
    for mask in (None, RIGHT, RIGHT.flip(1)):
        if family == "gpt2" and mask is not None:  # learned positions are counted from the first real token
            mask_options = {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
        else:
            mask_options = {}
        with torch.no_grad():
            expected = model(tokens, attention_mask=mask, **mask_options).logits
            found = other(tokens, attention_mask=mask, **mask_options).logits
        real = slice(None) if mask is None else mask.bool()
        assert expected.std() > 0.3
        torch.testing.assert_close(found[real], expected[real], rtol=0, atol=1e-5)


def test_a_swapped_model_generates_by_a_configuration_of_its_own() -> None:
    model = model_of("gpt2")
    swap_attention(model, "softmax").generation_config.max_new_tokens = 3
    assert model.generation_config.max_new_tokens is None


def test_no_memory_is_kept_where_activations_are_recomputed(generator: torch.Generator) -> None:
    model, tokens = swap_attention(model_of("llama"), "gated_delta").train(), tokens_of(generator)
    assert model(tokens, use_cache=True).past_key_values.get_seq_length() == 13
    model.activation_checkpointing_enable()
    assert model(tokens, use_cache=True).past_key_values is None


@pytest.mark.parametrize("options", [{"attention_bias": True}, {"num_key_value_heads": 1}, {"num_key_value_heads": 4}])
def test_options_of_llama_are_honoured(options: dict[str, Any], generator: torch.Generator) -> None:
    model, tokens = model_of("llama", **options), tokens_of(generator)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, generator=generator)
    other = swap_attention(model, "softmax")
    torch.testing.assert_close(other(tokens).logits, model(tokens).logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("family", FAMILIES)
def test_saved_models_come_back(family: str, plan: str, generator: torch.Generator, tmp_path: Path) -> None:
    auto = AutoModelForMaskedLM if family == "bert" else AutoModelForCausalLM
    model, tokens = swap_attention(model_of(family), plan), tokens_of(generator)
    model.save_pretrained(tmp_path)
    other = auto.from_pretrained(tmp_path).eval()
    assert type(other) is type(model) and other.config.plan == plan
    with torch.no_grad():
        assert torch.equal(model(tokens, attention_mask=RIGHT).logits, other(tokens, attention_mask=RIGHT).logits)


@pytest.mark.parametrize("family", FAMILIES)
def test_another_plan_has_initial_values(family: str, generator: torch.Generator, tmp_path: Path) -> None:
    auto = AutoModelForMaskedLM if family == "bert" else AutoModelForCausalLM
    swap_attention(model_of(family), "softmax").save_pretrained(tmp_path)
    other = auto.from_pretrained(tmp_path, plan="t2r(features=9) + rfa(features=16)")
    bound = (6 / (9 + other.attentions[0].mechanism.shape.head_dim)) ** 0.5
    assert 0 < other.attentions[0].mechanism.feature_weight.abs().max() <= bound
    assert other.attentions[1].mechanism.projections.std() > 0.5


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_packed_sequences_are_refused(family: str, generator: torch.Generator) -> None:
    model, tokens = swap_attention(model_of(family), "linear"), tokens_of(generator)
    packed = torch.cat([torch.arange(6), torch.arange(7)]).expand(3, -1)
    with pytest.raises(ValueError, match="position_ids: expected one sequence in a row"):
        model(tokens, position_ids=packed)
    model(tokens, position_ids=packed, attention_mask=(torch.arange(13) > 5).long().expand(3, -1))


@pytest.mark.parametrize("plan", ["softmax", *PLANS])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_generation_knows_no_cache_and_no_padding(family: str, plan: str, generator: torch.Generator) -> None:
    model, tokens = swap_attention(model_of(family, pad_token_id=0), plan), tokens_of(generator)
    options = {"max_new_tokens": 9, "do_sample": False, "attention_mask": RIGHT.flip(1)}
    found = [model.generate(tokens, use_cache=cached, **options) for cached in (True, False)]
    assert torch.equal(*found)
    for row, real in zip(range(3), (13, 5, 1), strict=True):
        whole = options | {"attention_mask": torch.ones(1, real).long()}
        alone = model.generate(tokens[row : row + 1, 13 - real :], **whole)
        assert torch.equal(alone[0, real:], found[0][row, 13:])
    beams = model.generate(tokens, num_beams=3, **options)
    assert torch.equal(beams, model.generate(tokens, num_beams=3, use_cache=False, **options))


@pytest.mark.training
@pytest.mark.parametrize("family", FAMILIES)
def test_layers_are_fitted_to_softmax(family: str, generator: torch.Generator) -> None:
    model, tokens = model_of(family), tokens_of(generator, 16)
    mask = (torch.arange(13) < torch.randint(4, 14, (16, 1), generator=generator)).long()
    other = swap_attention(model, "softmax + t2r(features=32)")
    before = {name: value.clone() for name, value in other.state_dict().items()}
    errors = transfer(model, other, [{"input_ids": tokens, "attention_mask": mask}] * 150, rate=1e-2)
    assert errors.shape == (150, 1) and errors[-1, 0] < errors[0, 0] / 2 and errors[0, 0] > 0.05
    changed = {name for name, value in other.state_dict().items() if not torch.equal(before[name], value)}
    assert changed and all(".mechanism." in name and "1." in name for name in changed)
    losses = tune(other, [{"input_ids": tokens, "labels": tokens}] * 60, rate=1e-2)
    assert losses[-1] < losses[0] / 2 and not other.training


def test_what_cannot_be_taken_over_is_said() -> None:
    assert losses_at_swap(swap_attention(model_of("llama"), "t2r")) == [
        "t2r has no rotary positions: its layers do without"
    ]
    assert losses_at_swap(swap_attention(model_of("gpt2"), "softmax")) == []


def test_what_does_not_fit_is_refused(generator: torch.Generator) -> None:
    gpt2, tokens = model_of("gpt2"), tokens_of(generator)
    for plan, message in (
        ("t2r*3", "3 layers described, the model has 2"),
        ("linformer(length=8)", "does not work at decoder_self|linformer"),
        ("superposition_stack(size=3)", "no projections of heads"),
        ("lsh", "lsh has one projection of queries and keys"),
    ):
        with pytest.raises(ValueError, match=message):
            swap_attention(gpt2, plan)
    with pytest.raises(ValueError, match="BertForSequenceClassification: expected one of GPT2LMHeadModel"):
        swap_attention(BertForSequenceClassification(model_of("bert").config), "softmax")
    with pytest.raises(ValueError, match="scale_attn_by_inverse_layer_idx: expected False"):
        swap_attention(model_of("gpt2", scale_attn_by_inverse_layer_idx=True), "softmax")
    with pytest.raises(ValueError, match="rope_type 'default'"):
        swap_attention(model_of("llama", rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}),
                       "softmax")
    with pytest.raises(ValueError, match="head_dim: expected 6, got 8"):
        swap_attention(model_of("llama", head_dim=8), "softmax")
    other = swap_attention(gpt2, "softmax")
    with pytest.raises(ValueError, match="output_attentions: expected False"):
        other(tokens, output_attentions=True)
    with pytest.raises(ValueError, match="attention_mask: expected 3 x 13, tokens before"):
        other(tokens, attention_mask=torch.ones(3, 1, 13, 13))
    with pytest.raises(ValueError, match="other attention than softmax"):
        transfer(gpt2, other, [])


@pytest.mark.training
def test_the_rate_follows_the_schedule() -> None:
    model = model_of("gpt2", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    tokens = torch.arange(14).view(2, 7)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batches = [{"input_ids": tokens, "labels": tokens}] * 3
    losses = tune(model, batches, 1e-2, lambda done: float(done == 2))
    assert losses.shape == (3,) and losses[0] == losses[1] == losses[2], "the last update alone counts"
    changed = [name for name, value in model.state_dict().items() if not torch.equal(value, before[name])]
    assert "transformer.h.0.mlp.c_fc.weight" in changed
    again = {name: value.clone() for name, value in model.state_dict().items()}
    tune(model, batches, 1e-2, lambda done: 0.0)
    assert all(torch.equal(value, again[name]) for name, value in model.state_dict().items())
    assert tune(model, []).shape == (0,)
    with torch.random.fork_rng():
        torch.manual_seed(3)  # features that one update helps by a third
        other = swap_attention(model, "t2r(features=3)")
    errors = transfer(model, other, batches, 1e-2, lambda done: float(done == 1))
    assert torch.equal(errors[0], errors[1]) and (errors[2] < errors[1]).all(), "the second update alone counts"


def test_a_rate_rises_and_falls() -> None:
    assert [falling(5, 2)(done) for done in range(6)] == pytest.approx([0.5, 0.8, 0.6, 0.4, 0.2, 0.0])
    assert falling(4)(0) == 1.0 and falling(4)(1) == 0.75
    assert falling(0)(0) == 1.0, "the schedule of no update is asked once, before the first"
