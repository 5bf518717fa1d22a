"""Models of transformers beyond the laws of generation: how they are made, trained and looked into."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM

from seqstruct.attention import ATTENTIONS, Site
from seqstruct.attention.plan import Choice
from seqstruct.attention.registry import make_config
from seqstruct.hf import SeqstructCache, SeqstructConfig, SeqstructForCausalLM, SeqstructForSequenceClassification
from seqstruct.testing.cases import cases
from tests.hf.building import AUTO, config_of, drawn, tokens_of


@pytest.mark.parametrize("name", sorted(ATTENTIONS))
def test_constructors_need_no_numbers(name: str) -> None:
    """As on the meta device, where `from_pretrained` builds models, at each site of a mechanism."""
    for case in cases():
        if case.name == name:
            arch = {Site.DECODER_SELF: "structured_transformer_lm", Site.CROSS: "structured_transformer",
                    Site.ENCODER_SELF: "structured_transformer_classifier"}[case.site]
            plan = str(Choice(name, make_config(name, case.options)))
            config = config_of(arch, **{f"{case.site.value}_attention": plan})
            with torch.device("meta"):
                model = AUTO[arch].from_config(config)
            assert all(p.device.type == "meta" for p in model.parameters())


@pytest.mark.parametrize("arch", AUTO)
def test_auto_classes_find_what_was_saved(arch: str, generator: torch.Generator, tmp_path: Path) -> None:
    plan = {"encoder_self_attention": "lsh(rounds=2, buckets=4) + luna(slots=3)",
            "decoder_self_attention": "performer(features=9) + lsh(rounds=2, buckets=4)",
            "share_all_embeddings": arch == "structured_transformer"}
    model, tokens = drawn(arch, **plan), tokens_of(generator)
    model.save_pretrained(tmp_path)
    other = AUTO[arch].from_pretrained(tmp_path).eval()
    assert type(AutoModel.from_pretrained(tmp_path)) is type(AutoModel.from_config(config_of(arch))) is type(model)
    assert type(other) is type(model) and AutoConfig.from_pretrained(tmp_path).arch == arch
    given = {"decoder_input_ids": tokens[:, 1:]} if arch == "structured_transformer" else {}
    with torch.no_grad():
        torch.testing.assert_close(model(tokens, **given).logits, other(tokens, **given).logits)
    # tensors of one name have one storage again
    assert sum(p.numel() for p in other.parameters()) == sum(p.numel() for p in model.parameters())


def test_another_plan_keeps_what_the_two_share(tmp_path: Path) -> None:
    model = drawn(decoder_self_attention="softmax")
    model.save_pretrained(tmp_path)
    other = AutoModelForCausalLM.from_pretrained(
        tmp_path, decoder_self_attention="softmax + rfa(features=16, gate=True)"
    )
    own, found = model.state_dict(), other.state_dict()
    assert all(torch.equal(value, found[name]) for name, value in own.items())
    new = [value for name, value in found.items() if name not in own]
    assert new and all(value.isfinite().all() for value in new)


@pytest.mark.parametrize("name", [name for name, found in ATTENTIONS.items() if Site.DECODER_SELF in found.sites])
@pytest.mark.parametrize("more", [{}, {"short_conv": 3, "decoder_learned_pos": True}], ids=["plain", "convolved"])
def test_what_another_plan_lacks_is_drawn_as_by_constructors(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    model = drawn(decoder_self_attention="softmax")
    model.save_pretrained(tmp_path)
    other = AutoModelForCausalLM.from_pretrained(tmp_path, decoder_self_attention=name, **more,
                                                 ignore_mismatched_sizes=name == "delta_product")
    fresh, own = AutoModelForCausalLM.from_config(other.config).state_dict(), model.state_dict()
    projections = {"q_proj", "k_proj"} if name == "lsh" else set()  # its one is softmax's of the queries
    for tensor, value in other.state_dict().items():
        assert not value.is_meta and value.shape == fresh[tensor].shape
        if tensor in own and own[tensor].shape == value.shape:
            assert torch.equal(value, own[tensor]) or tensor.split(".")[-2] in projections
        elif value.is_floating_point():
            most = float(fresh[tensor].abs().max())
            assert bool(value.isfinite().all()) and most / 20 <= float(value.abs().max()) <= 5 * most + 1e-3, tensor
    assert bool(other(torch.tensor([[4, 5, 6]])).logits.isfinite().all())


@pytest.mark.parametrize("plan", ["performer(features=8)", "rfa(features=8)", "lsh", "abc_random", "bigbird(size=3)"])
def test_tied_layers_with_buffers_are_saved(plan: str, generator: torch.Generator, tmp_path: Path) -> None:
    model = drawn("structured_transformer_classifier", encoder_self_attention=plan, tie_layers=True)
    model.save_pretrained(tmp_path)
    other, tokens = SeqstructForSequenceClassification.from_pretrained(tmp_path).eval(), tokens_of(generator)
    assert torch.equal(other(tokens).logits, model(tokens).logits)


@pytest.mark.parametrize("options", [{"decoder_learned_pos": True}, {"interleaved_positions": True}, {}])
def test_padding_needs_no_positions(options: dict[str, Any], generator: torch.Generator) -> None:
    model, tokens = drawn(max_target_positions=7, **options), tokens_of(generator)
    padded = torch.nn.functional.pad(tokens, (0, 3), value=1)
    found = model(padded, attention_mask=padded.ne(1).long(), use_cache=True)
    torch.testing.assert_close(found.logits[:, :7], model(tokens).logits)


@pytest.mark.parametrize("arch", AUTO)
def test_recomputed_activations_give_the_same_gradients(arch: str, generator: torch.Generator) -> None:
    model, tokens = drawn(arch, attention_dropout=0.1, decoder_self_attention="softmax + rfa(features=16)"), None
    tokens = tokens_of(generator)
    labels = torch.tensor([0, 1, 0]) if arch.endswith("classifier") else tokens
    found = []
    for checkpointed in (False, True):
        model.train().zero_grad()
        if checkpointed:
            model.activation_checkpointing_enable()
        with torch.random.fork_rng():
            torch.manual_seed(5)
            model(tokens, labels=labels).loss.backward()
        found.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    assert model.is_activation_checkpointing
    torch.testing.assert_close(*found)


def test_no_memory_is_written_where_activations_are_recomputed(generator: torch.Generator) -> None:
    """A second writing would have other gradients."""
    model, tokens = drawn(decoder_self_attention="softmax + gated_delta").train(), tokens_of(generator)
    assert model(tokens, use_cache=True).past_key_values is not None
    for reentrant in (False, True):
        model.activation_checkpointing_enable({"use_reentrant": reentrant})
        output = model(tokens, labels=tokens, use_cache=True)
        assert output.past_key_values is None
        output.loss.backward()
    with pytest.raises(ValueError, match="past_key_values: expected None in training with gradient checkpointing"):
        model(tokens, past_key_values=SeqstructCache(2))
    with pytest.raises(ValueError, match="use_reentrant: expected False, got True"):
        drawn("structured_transformer").activation_checkpointing_enable({"use_reentrant": True})


def test_random_vectors_do_not_change_under_recomputation() -> None:
    with pytest.raises(ValueError, match="redraw=0"):
        drawn(decoder_self_attention="performer").activation_checkpointing_enable()
    drawn(decoder_self_attention="performer(redraw=0)").activation_checkpointing_enable()


def test_sampling_depends_on_the_seed_and_not_on_the_cache(generator: torch.Generator) -> None:
    model, tokens = drawn(decoder_self_attention="superposition_stack(size=3) + gla"), tokens_of(generator)
    found = []
    for options in ({}, {"use_cache": False}):
        with torch.random.fork_rng():
            torch.manual_seed(11)
            found.append(
                model.generate(tokens, do_sample=True, top_k=0, max_new_tokens=9, eos_token_id=None, **options)
            )
    assert torch.equal(*found) and len(set(found[0][:, -9:].flatten().tolist())) > 3
    assert not (found[0][:, -9:] == model.config.pad_token_id).any()


def test_labels_are_predicted_at_their_places(generator: torch.Generator) -> None:
    model, tokens = drawn("structured_transformer"), tokens_of(generator)
    labels = tokens.masked_fill(torch.arange(7) > torch.tensor([6, 2, 4])[:, None], -100)
    output = model(tokens, labels=labels)
    given = model.prepare_decoder_input_ids_from_labels(labels)
    assert given[:, 0].eq(2).all() and torch.equal(given[1, 1:4], tokens[1, :3]) and given[1, 4:].eq(1).all()
    chosen = output.logits.log_softmax(-1).gather(2, tokens.unsqueeze(2)).squeeze(2)[labels != -100]
    torch.testing.assert_close(output.loss, -chosen.mean())


@pytest.mark.parametrize("arch", AUTO)
def test_losses_of_accumulated_batches_are_shares_of_all(arch: str, generator: torch.Generator) -> None:
    """`Trainer` says how many labels an update has, and then divides no loss by its batches."""
    model, tokens = drawn(arch, num_labels=3), tokens_of(generator)
    labels = torch.tensor([2, 0, 1]) if arch.endswith("classifier") else tokens
    items = labels[..., 1:].numel() if arch.endswith("_lm") else labels.numel()
    parts = [model(row[None], labels=label[None], num_items_in_batch=items).loss
             for row, label in zip(tokens, labels, strict=True)]
    torch.testing.assert_close(sum(parts), model(tokens, labels=labels).loss)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_padding_is_invisible_to_a_classifier(pairs: bool, pooling: str, generator: torch.Generator) -> None:
    model = drawn("structured_transformer_classifier", pooling=pooling, pairs=pairs, num_labels=3,
                  classifier_hidden_size=8)
    tokens = tokens_of(generator)
    mask = torch.arange(7) < torch.tensor([7, 2, 4])[:, None]

    def logits(text: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        second = {"second_input_ids": text.flip(0)} if pairs else {}
        return model(text, None if mask is None else mask.long(), **second).logits

    assert logits(tokens).shape == (3, 3)
    trees = drawn("structured_transformer_classifier", pooling=pooling,
                  encoder_self_attention="dependency(hidden_size=4, score_size=4)")
    alone = trees(tokens[1:2, :2].flip(1)).logits[0]
    torch.testing.assert_close(trees(tokens.flip(1), mask.flip(1).long()).logits[1], alone)
    if not pairs:
        alone = torch.cat([logits(row[: int(kept.sum())].unsqueeze(0)) for row, kept in zip(tokens, mask, strict=True)])
        torch.testing.assert_close(logits(tokens, mask), alone)
        torch.testing.assert_close(logits(tokens.masked_fill(~mask, 1)), alone)
        torch.testing.assert_close(logits(tokens.flip(1), mask.flip(1))[0], logits(tokens.flip(1))[0])


@pytest.mark.parametrize("arch, options", [
    ("structured_transformer_lm", {}),
    ("structured_transformer_lm", {"share_decoder_input_output_embed": True}),
    ("structured_transformer", {"share_all_embeddings": True}),
    ("structured_transformer_classifier", {}),
])
def test_more_tokens_are_saved_and_loaded(
    arch: str, options: dict[str, Any], generator: torch.Generator, tmp_path: Path
) -> None:
    model = drawn(arch, source_vocab_size=13, **options)
    with torch.random.fork_rng():
        assert len(model.resize_token_embeddings(17).weight) == 17
    model.save_pretrained(tmp_path)
    given = {"input_ids": 4 + tokens_of(generator)}
    given |= {"decoder_input_ids": 4 + tokens_of(generator)} if arch == "structured_transformer" else {}
    assert torch.equal(AUTO[arch].from_pretrained(tmp_path).eval()(**given).logits, model(**given).logits)


@pytest.mark.parametrize("options", [{}, {"share_decoder_input_output_embed": True}])
def test_tables_of_two_sides_are_not_resized(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="resize_token_embeddings: expected a model with share_all_embeddings"):
        drawn("structured_transformer", **options).resize_token_embeddings(17)


def test_what_does_not_fit_is_refused(generator: torch.Generator) -> None:
    from transformers import DynamicCache

    with pytest.raises(ValueError, match="no attention is called 'soft'"):
        config_of(decoder_self_attention="soft")
    with pytest.raises(ValueError, match="arch: expected one of"):
        config_of("transformer")
    model, tokens = drawn(), tokens_of(generator)
    with pytest.raises(ValueError, match="expected a SeqstructCache"):
        model(tokens, past_key_values=DynamicCache())
    cache = model(tokens, use_cache=True).past_key_values
    assert isinstance(cache, SeqstructCache) and cache.get_seq_length() == 7
    with pytest.raises(ValueError, match="cannot be put back"):
        cache.crop(1)
    labels = drawn("structured_transformer_classifier")
    assert isinstance(labels, SeqstructForSequenceClassification)
    with pytest.raises(ValueError, match="second_input_ids: expected none"):
        labels(tokens, second_input_ids=tokens)
    for mask in (torch.ones(3, 6), torch.ones(2, 7), torch.ones(3, 1, 7, 7)):
        for given in (model, labels, drawn("structured_transformer")):
            with pytest.raises(ValueError, match="attention_mask: expected 3 x 7, tokens before these in front"):
                given(tokens, attention_mask=mask)
    for given in ({}, {"input_ids": tokens, "inputs_embeds": model.decoder.embed_tokens(tokens)}):
        with pytest.raises(ValueError, match="expected tokens or embeddings, got (neither|both)"):
            model(**given)
    with pytest.raises(ValueError, match="position_ids: expected one sequence in a row"):
        model(tokens, position_ids=torch.arange(7).expand(3, -1) % 4)
    assert torch.equal(model(tokens, position_ids=torch.arange(7)[None]).logits, model(tokens).logits)
    with pytest.raises(ValueError, match="learned|positions"):
        drawn(max_target_positions=5, decoder_learned_pos=True)(tokens)


@pytest.mark.parametrize("options, said", [
    ({"rotary": "yes"}, "rotary: expected one of none, all, hybrid, got 'yes'"),
    ({"pooling": "max"}, "pooling: expected one of first, mean, got 'max'"),
    ({"pad_token_id": None}, "pad_token_id: expected the id of a token, got None"),
    ({"interleaved_positions": True, "decoder_learned_pos": True}, "interleaved_positions: expected no learned"),
    ({"reversible": True, "arch": "structured_transformer"}, "reversible: expected a structured_transformer_lm"),
    ({"reversible": True, "decoder_normalize_before": False}, "reversible: expected .* decoder_normalize_before"),
    ({"logit_soft_cap": 0.0}, "logit_soft_cap: expected a finite number above 0, got 0.0"),
    ({"rotary": "all", "decoder_self_attention": "delta"}, "delta takes no rotary positions"),
    ({"arch": "structured_transformer", "share_all_embeddings": True, "source_vocab_size": 15},
     "share_all_embeddings: expected tables of one size on both sides, got 13 x 12 and 15 x 12"),
    ({"tie_layers": True, "encoder_self_attention": "softmax + linear"}, "tie_layers: expected one mechanism"),
])
def test_options_are_refused_as_by_fairseq(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        config_of(**options)


@pytest.mark.parametrize("cross", ["alignment_crf", "local_monotonic(half_width=1)"])
def test_padding_before_a_target_moves_no_query(cross: str, generator: torch.Generator) -> None:
    """At cross attention, to mechanisms that read at positions; with a cache and without."""
    model, tokens = drawn("structured_transformer", cross_attention=cross), tokens_of(generator)
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]])
    given = {"decoder_input_ids": tokens[:, :4].masked_fill(mask == 0, 1), "decoder_attention_mask": mask}
    for cached in (False, True):
        logits = model(tokens, use_cache=cached, **given).logits
        for row, kept in enumerate(mask.bool()):
            alone = model(tokens[row : row + 1], decoder_input_ids=tokens[row : row + 1, :4][:, kept]).logits[0]
            torch.testing.assert_close(logits[row, kept], alone)


def test_generation_sees_no_padding_of_the_source(generator: torch.Generator) -> None:
    """Without a mask, too, which transformers makes up for language models alone."""
    model, tokens = drawn("structured_transformer"), tokens_of(generator)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.9, 0.9, generator=generator)
    mask = torch.arange(7) < torch.tensor([7, 2, 4])[:, None]
    options = {"max_new_tokens": 6, "output_logits": True, "return_dict_in_generate": True, "do_sample": False}
    expected = model.generate(tokens.masked_fill(~mask, 1), attention_mask=mask.long(), **options).logits
    found = model.generate(tokens.masked_fill(~mask, 1), **options).logits
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("options", [
    {"do_sample": True, "top_k": 1}, {"do_sample": True, "top_k": 0, "top_p": 0.1},
    {"do_sample": True, "top_k": 1, "num_beams": 2}, {"eos_token_id": [2]}, {"eos_token_id": [2], "num_beams": 2},
])
def test_translations_end_in_time(options: dict[str, Any], generator: torch.Generator) -> None:
    """Also where sampling leaves out the end, and where ends are in a list."""
    model, tokens = drawn("structured_transformer"), tokens_of(generator)
    with torch.no_grad():
        model.decoder.output_projection.weight[2].zero_()  # the end is no likely token
    assert model.generate(tokens, max_new_tokens=3, **options)[:, 1:].eq(2).any(1).all()


def test_nothing_is_an_input_too() -> None:
    tokens = torch.zeros(3, 0, dtype=torch.long)
    assert drawn()(tokens).logits.shape == (3, 0, 13)
    output = drawn("structured_transformer_classifier", pooling="mean")(tokens).logits
    assert output.isfinite().all()


def test_a_cache_goes_on_from_chosen_rows(generator: torch.Generator) -> None:
    model, tokens = drawn(decoder_self_attention="delta + softmax"), tokens_of(generator)
    assert isinstance(model, SeqstructForCausalLM)
    cache = model(tokens[:, :4], use_cache=True).past_key_values
    cache.batch_repeat_interleave(2)
    cache.batch_select_indices(torch.tensor([5, 0, 1], dtype=torch.int32))  # as transformers' beam search says them
    assert all(layer.order.dtype == torch.long for layer in cache.layers)
    order = torch.tensor([2, 0, 0])
    rest = torch.randint(4, 13, (3, 3), generator=generator)
    found = model(rest, past_key_values=cache).logits
    expected = model(torch.cat([tokens[order, :4], rest], 1)).logits[:, 4:]
    torch.testing.assert_close(found, expected)


@pytest.mark.training
def test_the_trainer_of_transformers_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are learnt in reverse, with gradient checkpointing, and the saved model says them so."""
    pytest.importorskip("accelerate", reason="transformers' Trainer needs the package accelerate")
    # one for another torch, which fairseq's requirements bring along, fails at the import
    monkeypatch.setitem(sys.modules, "torchaudio", None)
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

    texts = torch.randint(4, 13, (256, 5), generator=torch.Generator().manual_seed(1))
    rows = [{"input_ids": text, "labels": torch.cat([text.flip(0), torch.tensor([2])])} for text in texts]
    layer = dict(layers=2, embed_dim=32, ffn_embed_dim=64, attention_heads=2, normalize_before=True)
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in layer.items()}
    options = Seq2SeqTrainingArguments(
        output_dir=str(tmp_path), max_steps=150, per_device_train_batch_size=32, learning_rate=0.01, report_to=[],
        activation_checkpointing=True, save_strategy="no", use_cpu=True, seed=1, disable_tqdm=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = AutoModelForSeq2SeqLM.from_config(SeqstructConfig(
            arch="structured_transformer", vocab_size=13, decoder_self_attention="gated_delta",
            share_all_embeddings=True, dropout=0.0, **sizes,
        ))
        trainer = Seq2SeqTrainer(model=model, train_dataset=rows, args=options)
        trainer.train()
    trainer.save_model(str(tmp_path / "saved"))
    saved = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "saved").eval()
    found = saved.generate(texts[:64], max_length=7)[:, 1:6]
    assert (found == texts[:64].flip(1)).float().mean() > 0.6  # chance: 0.11
