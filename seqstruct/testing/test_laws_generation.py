"""The laws of models of transformers with a mechanism in every layer: what is saved, and what `generate` finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from seqstruct.attention import Site
from seqstruct.attention.plan import Choice
from seqstruct.attention.registry import make_config
from seqstruct.testing.cases import DIM, HEADS, Case

pytest.importorskip("transformers", reason="the laws of generation need the extra hf")

GENERATING = pytest.mark.law(streaming=True, decoder=True)
VOCABULARY, PROMPT, NEW, BEAM = 11, 5, 4, 3
PAD, EOS = 1, 2


def model_of(case: Case, generator: torch.Generator) -> Any:
    """A language model of two layers, or a translation model for a mechanism at cross attention, in float64."""
    from seqstruct.hf import SeqstructConfig, SeqstructForCausalLM, SeqstructForSeq2SeqLM

    plan = str(Choice(case.name, make_config(case.name, case.options)))
    layers = {"decoder_layers": 2, "decoder_embed_dim": DIM, "decoder_ffn_embed_dim": 5}
    heads = {"decoder_attention_heads": HEADS, "encoder_attention_heads": HEADS}
    cross = case.site is Site.CROSS
    encoder = {"encoder_layers": 1, "encoder_embed_dim": DIM, "encoder_ffn_embed_dim": 5} if cross else {}
    config = SeqstructConfig(
        arch="structured_transformer" if cross else "structured_transformer_lm",
        vocab_size=VOCABULARY, **layers, **heads, **encoder, **{f"{case.site.value}_attention": plan},
    )
    with torch.random.fork_rng():
        torch.manual_seed(generator.initial_seed())
        model = (SeqstructForSeq2SeqLM if cross else SeqstructForCausalLM)(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.9, 0.9, generator=generator)
    return model


def prompts(generator: torch.Generator, batch: int = 3, length: int = PROMPT) -> Tensor:
    """Random tokens B T; none is special."""
    return torch.randint(4, VOCABULARY, (batch, length), generator=generator)


def logits_of(model: Any, tokens: Tensor, target: Tensor | None = None, **options: Any) -> Tensor:
    """Logits of one pass: of a translation model, of the target."""
    options = options if target is None else {**options, "decoder_input_ids": target}
    return model(tokens, **options).logits


def started(tokens: Tensor) -> Tensor:
    """Targets B T as a decoder takes them, after a token that begins them."""
    return torch.cat([torch.full_like(tokens[:, :1], EOS), tokens], 1)


@GENERATING
def test_what_was_saved_is_loaded_bit_by_bit(case: Case, generator: torch.Generator, tmp_path: Path) -> None:
    model, tokens = model_of(case, generator), prompts(generator)
    target = tokens[:, :3] if case.site is Site.CROSS else None
    model.save_pretrained(tmp_path)
    other = type(model).from_pretrained(tmp_path, dtype=torch.float64).eval()
    own, found = model.state_dict(), other.state_dict()
    assert own.keys() == found.keys()
    assert all(torch.equal(own[name], found[name]) for name in own)
    for tensor in (*other.parameters(), *other.buffers()):
        tensor.data = tensor.data.clone()  # in a file they lie at any address, on which the last bit of sums depends
    assert torch.equal(logits_of(other, tokens, target), logits_of(model, tokens, target))


@GENERATING
@pytest.mark.parametrize("beams", [1, BEAM])
def test_generation_with_a_cache_is_that_without(case: Case, beams: int, generator: torch.Generator) -> None:
    model, tokens = model_of(case, generator), prompts(generator)
    options = {"max_new_tokens": NEW, "num_beams": beams, "do_sample": False}
    cached = model.generate(tokens, **options)
    assert torch.equal(cached, model.generate(tokens, use_cache=False, **options))


@GENERATING
def test_scores_of_beams_are_those_of_their_tokens(case: Case, generator: torch.Generator) -> None:
    """So a beam's memory is its own, whichever row of the batch it came from."""
    model, tokens = model_of(case, generator), prompts(generator)
    found = model.generate(
        tokens, max_new_tokens=NEW, num_beams=BEAM, num_return_sequences=BEAM, return_dict_in_generate=True,
        output_scores=True, do_sample=False, early_stopping=True,
    )
    sequences, source = found.sequences, tokens.repeat_interleave(BEAM, 0)
    if case.site is Site.CROSS:
        logits, new = logits_of(model, source, sequences[:, :-1]), sequences[:, 1:]
    else:
        logits, new = logits_of(model, sequences[:, :-1])[:, PROMPT - 1 :], sequences[:, PROMPT:]
    chosen = logits.log_softmax(-1).gather(2, new.unsqueeze(2)).squeeze(2)
    real = torch.cat([torch.zeros_like(new[:, :1]), (new == EOS).cumsum(1)[:, :-1]], 1) == 0
    scores = (chosen * real).sum(1) / real.sum(1)
    torch.testing.assert_close(found.sequences_scores.double(), scores, rtol=1e-5, atol=1e-6)


@GENERATING
def test_padding_on_the_left_changes_no_prompt(case: Case, generator: torch.Generator) -> None:
    model, tokens = model_of(case, generator), prompts(generator)
    lengths = [1, PROMPT, 3]
    mask = torch.arange(PROMPT) >= PROMPT - torch.tensor(lengths)[:, None]
    options = {"max_new_tokens": NEW, "do_sample": False, "eos_token_id": None}
    together = model.generate(tokens.masked_fill(~mask, PAD), attention_mask=mask.long(), **options)
    for row, length in enumerate(lengths):
        alone = model.generate(tokens[row : row + 1, PROMPT - length :], **options)
        assert torch.equal(together[row, -NEW:], alone[0, -NEW:])


@GENERATING
def test_a_prompt_may_come_in_parts(case: Case, generator: torch.Generator) -> None:
    model, tokens = model_of(case, generator), started(prompts(generator))
    source = prompts(generator) if case.site is Site.CROSS else None
    inputs = [tokens] if source is None else [source, tokens]
    whole, parts, cache = logits_of(model, *inputs), [], None
    for part in (tokens[:, :2], tokens[:, 2:3], tokens[:, 3:]):
        now = [part] if source is None else [source, part]
        keyword = {"past_key_values": cache, "use_cache": True}
        given = {"decoder_input_ids": now[1]} if source is not None else {}
        output = model(now[0], **given, **keyword)
        cache = output.past_key_values
        parts.append(output.logits)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-9, atol=1e-10)
