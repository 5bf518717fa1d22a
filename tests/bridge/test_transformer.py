"""The structured transformers against fairseq's own: same parameters, same numbers, in every mode."""

from __future__ import annotations

import argparse
import logging

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from fairseq.models.transformer_lm import TransformerLanguageModel, TransformerLanguageModelConfig
from fairseq.sequence_generator import SequenceGenerator

from seqstruct.attention import Site
from seqstruct.bridge.passes import collect_readings
from tests.models.building import dictionary_of, small_language_model, small_translation_model, task_of
from tests.randomised import randomised

STACK = "superposition_stack(size=3) + softmax"
PLANS = [
    {},
    {"encoder_self_attention": STACK, "decoder_self_attention": STACK},
    {"decoder_self_attention": "softmax + nondeterministic_stack(states=2, symbols=2, size=3)"},
    {"decoder_self_attention": "state_stack(height=3) + stratification_stack(size=3)", "stack_to_output": True},
    {"encoder_self_attention": "sigmoid", "cross_attention": "sigmoid(bias=-1) + softmax"},
]


@pytest.fixture(scope="module")
def dictionary() -> Dictionary:
    return dictionary_of("abcdefghi")


def source(dictionary: Dictionary, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Left-padded sources, as fairseq makes them, and right-padded previous outputs."""
    tokens = torch.randint(4, len(dictionary), (3, 8), generator=generator)
    tokens[:, -1] = dictionary.eos()
    tokens[1, :3] = dictionary.pad()
    previous = torch.randint(4, len(dictionary), (3, 6), generator=generator)
    previous[:, 0] = dictionary.eos()
    previous[2, 4:] = dictionary.pad()
    lengths = tokens.ne(dictionary.pad()).sum(1)
    return {"src_tokens": tokens, "src_lengths": lengths, "prev_output_tokens": previous}


def stock_translation_model(dictionary: Dictionary, normalize_before: bool, learned: bool) -> TransformerModelBase:
    sizes = dict(embed_dim=12, ffn_embed_dim=20, layers=2, attention_heads=2)
    options = {**sizes, "normalize_before": normalize_before, "learned_pos": learned}
    flat = argparse.Namespace(**{f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in options.items()})
    config = TransformerConfig.from_namespace(flat)
    config.decoder.input_dim = config.decoder.output_dim = 12
    return TransformerModelBase.build_model(config, task_of(dictionary)).eval()


@pytest.mark.parametrize("normalize_before", [False, True])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_softmax_translation_equals_fairseq(
    normalize_before: bool, learned: bool, tied: bool, dictionary: Dictionary, generator: torch.Generator
) -> None:
    stock = stock_translation_model(dictionary, normalize_before, learned)
    options = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("normalize_before", normalize_before), ("learned_pos", learned))
    }
    ours = small_translation_model(dictionary, share_decoder_input_output_embed=tied, **options).eval()
    state = stock.state_dict()
    if tied:
        state["decoder.output_projection.weight"] = state["decoder.embed_tokens.weight"]
        stock.load_state_dict(state)
    ours.load_state_dict(dict(state))
    inputs = source(dictionary, generator)
    wanted, found = stock(**inputs), ours(**inputs)
    real = inputs["prev_output_tokens"].ne(dictionary.pad())
    torch.testing.assert_close(found[0][real], wanted[0][real], rtol=0, atol=1e-6)
    torch.testing.assert_close(found[1]["attn"][0], wanted[1]["attn"][0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("post_norm", [False, True])
def test_softmax_language_model_equals_fairseq(
    post_norm: bool, dictionary: Dictionary, generator: torch.Generator
) -> None:
    sizes = dict(
        decoder_embed_dim=12,
        decoder_input_dim=12,
        decoder_output_dim=12,
        decoder_ffn_embed_dim=20,
        decoder_layers=2,
        decoder_attention_heads=2,
    )
    stock = TransformerLanguageModel.build_model(
        TransformerLanguageModelConfig(
            **sizes,
            decoder_normalize_before=not post_norm,
            add_bos_token=False,
            tokens_per_sample=64,
            max_target_positions=64,
        ),
        task_of(dictionary),
    ).eval()
    ours = small_language_model(dictionary, decoder_normalize_after=post_norm).eval()
    ours.load_state_dict(stock.state_dict())
    tokens = torch.randint(4, len(dictionary), (3, 9), generator=generator)
    torch.testing.assert_close(ours(tokens)[0], stock(tokens)[0], rtol=0, atol=1e-6)


def greedy(model: torch.nn.Module, inputs: dict, dictionary: Dictionary, steps: int) -> list[list[int]]:
    """The most likely next symbol, one whole forward pass a step."""
    results = []
    for row in range(inputs["src_tokens"].size(0)):
        source_row = {name: inputs[name][row : row + 1] for name in ("src_tokens", "src_lengths")}
        tokens = [dictionary.eos()]
        for _ in range(steps):
            scores = model(**source_row, prev_output_tokens=torch.tensor([tokens]))[0][0, -1].log_softmax(-1)
            scores[dictionary.pad()] = -torch.inf
            if len(tokens) == 1:  # min_len is 1 there
                scores[dictionary.eos()] = -torch.inf
            tokens.append(int(scores.argmax()))
            if tokens[-1] == dictionary.eos():
                break
        results.append(tokens[1:])
    return results


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_beam_1_is_greedy_and_beam_4_scores_are_true(
    plan: dict[str, str], dictionary: Dictionary, generator: torch.Generator
) -> None:
    model = randomised(small_translation_model(dictionary, **plan), generator, 0.5).eval().double()
    inputs = source(dictionary, generator)
    sample = {"net_input": {name: inputs[name] for name in ("src_tokens", "src_lengths")}}
    with torch.no_grad():
        one = SequenceGenerator([model], dictionary, beam_size=1, max_len_b=6)
        for row, wanted in enumerate(greedy(model, inputs, dictionary, 6)):
            found = one.generate([model], sample)[row][0]["tokens"].tolist()
            assert found[:6] == wanted
        four = SequenceGenerator([model], dictionary, beam_size=4, max_len_b=6, normalize_scores=False)
        for row, hypotheses in enumerate(four.generate([model], sample)):
            for hypothesis in hypotheses:
                tokens = hypothesis["tokens"]
                previous = torch.cat([tokens.new_tensor([dictionary.eos()]), tokens[:-1]])
                logits = model(
                    inputs["src_tokens"][row : row + 1], inputs["src_lengths"][row : row + 1], previous[None]
                )[0]
                score = logits.log_softmax(-1)[0].gather(1, tokens[:, None]).sum()
                torch.testing.assert_close(hypothesis["score"].double(), score, rtol=1e-5, atol=1e-5)


def test_a_loaded_model_calls_our_attention(dictionary: Dictionary, generator: torch.Generator) -> None:
    plan = PLANS[1]
    trained = randomised(small_translation_model(dictionary, **plan), generator, 0.5).eval()
    loaded = small_translation_model(dictionary, **plan).eval()
    loaded.load_state_dict(trained.state_dict())
    inputs = source(dictionary, generator)
    with collect_readings() as readings:
        torch.testing.assert_close(loaded(**inputs)[0], trained(**inputs)[0])
    sites = [(r.site, r.layer) for r in readings[: len(readings) // 2]]
    assert sites == [(Site.ENCODER_SELF, 0), (Site.ENCODER_SELF, 1)] + [
        (site, layer) for layer in (0, 1) for site in (Site.DECODER_SELF, Site.CROSS)
    ]
    assert readings[0].reading.extra["actions"].shape == (3, 8, 3)
    with torch.no_grad():
        loaded.encoder.layers[0].self_attn.mechanism.output_layer.weight.zero_()
    assert (loaded(**inputs)[0] - trained(**inputs)[0]).abs().max() > 1e-3


def test_attention_is_swapped_into_a_trained_softmax_model(
    dictionary: Dictionary, generator: torch.Generator, caplog: pytest.LogCaptureFixture
) -> None:
    stock = randomised(stock_translation_model(dictionary, False, False), generator, 0.5).eval()
    swapped = small_translation_model(dictionary, decoder_self_attention=STACK)
    before = swapped.decoder.layers[0].self_attn.mechanism.pushed_layer.weight.clone()
    with caplog.at_level(logging.WARNING, logger="seqstruct"):
        swapped.load_state_dict(stock.state_dict())
    assert "decoder.layers.0.self_attn" in caplog.text and "fine-tuning" in caplog.text
    assert "(35.5 BLEU) and used with random feature attention had 0.4" in caplog.text and "Table 4.6" in caplog.text
    assert "decoder.layers.1.self_attn" not in caplog.text
    assert torch.equal(swapped.decoder.layers[0].self_attn.mechanism.pushed_layer.weight, before)
    for name, value in stock.state_dict().items():
        if not name.startswith("decoder.layers.0.self_attn."):
            own = name.replace("_attn.", "_attn.mechanism.") if "attn." in name else name
            assert torch.equal(swapped.state_dict()[own], value), name


@pytest.mark.parametrize("plan", ["t2r(features=4)", "rfa(features=8, gate=True)", "abc_mlp(slots=3)"])
def test_projections_of_a_trained_softmax_model_are_taken_over(
    plan: str, dictionary: Dictionary, generator: torch.Generator, caplog: pytest.LogCaptureFixture
) -> None:
    trained = randomised(small_translation_model(dictionary), generator, 0.5).eval()
    sites = {"decoder_self_attention": plan, "cross_attention": plan}
    swapped = small_translation_model(dictionary, **sites)
    before = {name: value.clone() for name, value in swapped.state_dict().items()}
    with caplog.at_level(logging.WARNING, logger="seqstruct"):
        swapped.load_state_dict(trained.state_dict())
    assert "decoder.layers.1.encoder_attn" in caplog.text and "needs fine-tuning" in caplog.text
    state, own = trained.state_dict(), swapped.state_dict()
    assert any("q_proj" in name for name in state) and set(state) < set(own)
    for name, value in own.items():
        assert torch.equal(value, state.get(name, before[name])), name
    swapped(**source(dictionary, generator))[0].sum().backward()
    mechanism = swapped.decoder.layers[0].self_attn.mechanism
    assert all(p.grad is not None and p.grad.isfinite().all() for p in mechanism.parameters())
    caplog.clear()
    back = small_translation_model(dictionary)
    back.load_state_dict(swapped.state_dict())
    assert "decoder.layers.0.self_attn" in caplog.text and "had 0.7" in caplog.text
    for name, value in back.state_dict().items():
        assert torch.equal(value, state[name]), name


def test_another_architecture_is_refused(dictionary: Dictionary) -> None:
    state = small_translation_model(dictionary, decoder_layers=3).state_dict()
    with pytest.raises(ValueError, match="another architecture: it holds decoder.layers.2"):
        small_translation_model(dictionary).load_state_dict(state)
    state = small_translation_model(dictionary, decoder_ffn_embed_dim=16).state_dict()
    with pytest.raises(ValueError, match="another architecture: decoder.layers.0.fc1.weight is"):
        small_translation_model(dictionary).load_state_dict(state)


def test_what_structured_attention_does_not_offer_is_refused(dictionary: Dictionary) -> None:
    with pytest.raises(ValueError, match="--base-layers does not go with an attention plan"):
        small_language_model(dictionary, base_layers=1)
    with pytest.raises(ValueError, match="--decoder-layers-to-keep does not go with an attention plan"):
        small_language_model(dictionary, decoder_layers_to_keep="0")
    with pytest.raises(ValueError, match="--decoder-input-dim 6: .* are of --decoder-embed-dim 12"):
        small_translation_model(dictionary, decoder_input_dim=6)
    with pytest.raises(ValueError, match="exclude each other"):
        small_language_model(dictionary, decoder_normalize_before=True, decoder_normalize_after=True)
    with pytest.raises(ValueError, match="neither shared nor adaptive"):
        small_language_model(dictionary, compact_vocabulary=True, share_decoder_input_output_embed=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adaptive_input": True}, "--adaptive-input needs --adaptive-input-cutoff"),
        ({"adaptive_input": True, "adaptive_input_cutoff": "5", "share_decoder_input_output_embed": True},
         "--share-decoder-input-output-embed does not go with --adaptive-input"),
        ({"tie_adaptive_weights": True, "adaptive_softmax_cutoff": "5"}, "one cutoff .*, got None and 5"),
        ({"tie_adaptive_weights": True, "adaptive_input": True, "adaptive_input_cutoff": "5"}, "got 5 and None"),
        ({"tie_adaptive_weights": True, "adaptive_input": True, "adaptive_input_cutoff": "5",
          "adaptive_softmax_cutoff": "7"}, "one cutoff at the input and at the output, got 5 and 7"),
        ({"tie_adaptive_weights": True, "adaptive_input": True, "adaptive_input_cutoff": "5",
          "adaptive_softmax_cutoff": "5", "decoder_output_dim": 7},
         "one size: --decoder-embed-dim is 12, --decoder-output-dim 7"),
    ],
)
def test_adaptive_tables_that_do_not_fit_are_refused(
    options: dict[str, object], message: str, dictionary: Dictionary
) -> None:
    with pytest.raises(ValueError, match=message):
        small_language_model(dictionary, **options)


def test_full_context_is_refused_by_causal_attention(dictionary: Dictionary, generator: torch.Generator) -> None:
    model = small_translation_model(dictionary)
    inputs = source(dictionary, generator)
    encoder_out = model.encoder(inputs["src_tokens"], src_lengths=inputs["src_lengths"])
    with pytest.raises(ValueError, match="is causal; a full context was asked for"):
        model.decoder(inputs["prev_output_tokens"], encoder_out=encoder_out, full_context_alignment=True)


@pytest.mark.parametrize("option", ["checkpoint_activations", "encoder_layerdrop"])
def test_layer_wrappers_of_fairseq_still_train(
    option: str, dictionary: Dictionary, generator: torch.Generator
) -> None:
    model = small_translation_model(dictionary, **PLANS[1], **{option: True if "check" in option else 0.5})
    model(**source(dictionary, generator))[0].sum().backward()
    assert model.decoder.layers[0].fc1.weight.grad.abs().max() > 0


@pytest.mark.parametrize("plan", ["dependency", "luna(slots=3) + softmax", "softmax + luna(slots=3)"])
def test_checkpointed_layers_have_the_same_gradients(
    plan: str, dictionary: Dictionary, generator: torch.Generator
) -> None:
    inputs, found = source(dictionary, generator), []
    plain = randomised(small_translation_model(dictionary, encoder_self_attention=plan), generator, 0.5).eval()
    for options in ({}, {"checkpoint_activations": True}):
        model = small_translation_model(dictionary, encoder_self_attention=plan, dropout=0.0, **options)
        model.load_state_dict(plain.state_dict())
        model(**inputs)[0].sin().sum().backward()
        found.append([parameter.grad for parameter in model.parameters() if parameter.grad is not None])
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("option", ["checkpoint_activations", "offload_activations"])
def test_layers_that_hand_on_a_memory_are_not_checkpointed(option: str, dictionary: Dictionary) -> None:
    with pytest.raises(ValueError, match="--checkpoint-activations does not go with two layers of luna"):
        small_translation_model(dictionary, encoder_self_attention="luna(slots=3)", **{option: True})


def test_mechanisms_that_drop_no_weights_are_named_once(
    dictionary: Dictionary, caplog: pytest.LogCaptureFixture
) -> None:
    plan = {
        "encoder_self_attention": "rfa(features=4) + softmax",
        "decoder_self_attention": "sliding_window(slots=2)",
        "cross_attention": "rfa(features=4)",
    }
    for dropout, options in ((0.25, plan), (0.0, plan), (0.25, {})):
        caplog.clear()
        small_translation_model(dictionary, attention_dropout=dropout, **options)
        warned = [record.getMessage() for record in caplog.records if "attention_dropout" in record.getMessage()]
        assert len(warned) == (dropout > 0 and options is plan)
    caplog.clear()
    small_language_model(dictionary, attention_dropout=0.25, decoder_self_attention="softmax + linear")
    assert [record.getMessage() for record in caplog.records if record.name.startswith("seqstruct")] == [
        "attention_dropout is 0.25, and these mechanisms of the plan do not use it: linear"
    ]


def test_stacks_are_read_by_the_output_layer_too(dictionary: Dictionary, generator: torch.Generator) -> None:
    plan = "superposition_stack(size=3) + softmax"
    plain = randomised(small_language_model(dictionary, decoder_self_attention=plan), generator, 0.5).eval()
    model = small_language_model(dictionary, decoder_self_attention=plan, stack_to_output=True).eval()
    lacking = torch.nn.Module.load_state_dict(model, plain.state_dict(), strict=False)
    assert lacking.missing_keys == ["decoder.stack_projection.weight"] and not lacking.unexpected_keys
    tokens = torch.randint(4, len(dictionary), (3, 9), generator=generator)
    with collect_readings() as readings:
        features = model.decoder.extract_features(tokens, None)[0]
    (given,) = [reading.output for _, layer, reading in readings if layer == 0]
    expected = plain.decoder.extract_features(tokens, None)[0] + given @ model.decoder.stack_projection.weight.T
    torch.testing.assert_close(features, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"decoder_self_attention": "softmax"}, "--stack-to-output: no layer of decoder self-attention has a stack"),
        ({"checkpoint_activations": True}, "--checkpoint-activations does not go with --stack-to-output"),
        ({"offload_activations": True}, "--checkpoint-activations does not go with --stack-to-output"),
        ({"reversible": True}, "--reversible does not go with --stack-to-output"),
        ({"decoder_layerdrop": 0.1}, "--decoder-layerdrop does not go with --stack-to-output"),
    ],
)
def test_where_stacks_cannot_be_read_by_the_output_layer(
    options: dict, sentence: str, dictionary: Dictionary
) -> None:
    with pytest.raises(ValueError, match=sentence):
        small_language_model(
            dictionary, **{"decoder_self_attention": "superposition_stack", "stack_to_output": True, **options}
        )
