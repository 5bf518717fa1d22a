"""The transformer classifier: padding, pairs, shared layers, every encoder mechanism, and through the front door."""

from __future__ import annotations

import argparse
import re
import types

import numpy as np
import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.data.text_classification.folder import Labelled, read_meta, write_sentences
from seqstruct.models.transformer.classifier import StructuredClassifier, StructuredClassifierConfig
from seqstruct.tasks.text_classification import TextClassificationConfig, TextClassificationTask
from tests.models.building import dictionary_of
from tests.models.front_door import fairseq, sizes

PLANS = [
    "softmax", "linear", "rfa(features=8)", "rfa(features=8, kernel='arccos')", "performer(features=8)",
    "abc_mlp(slots=3)", "linformer(slots=3, length=20)", "lsh(rounds=2, buckets=4, chunk=4)", "sinkhorn(size=4)",
    "synthesizer(length=20)", "bigbird(size=2, random=1)", "local_blocks(size=4)", "softmax + linear",
]


def small(plan="softmax", pairs=False, **options):
    config = StructuredClassifierConfig(
        encoder_self_attention=plan, encoder_embed_dim=12, encoder_ffn_embed_dim=20, encoder_layers=2,
        encoder_attention_heads=2, max_source_positions=20,
    )
    for name, value in options.items():
        setattr(config, name, value)
    task = types.SimpleNamespace(source_dictionary=dictionary_of("abcd"), labels=["x", "y", "z"], pairs=pairs)
    return StructuredClassifier.build_model(config, task).eval()


def texts(generator, lengths):
    rows = [torch.randint(4, 8, (n,), generator=generator) for n in lengths]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1), torch.tensor(lengths)


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("plan", PLANS)
def test_a_text_alone_and_in_a_batch(plan, pooling, generator):
    model = small(plan, pooling=pooling).double()
    tokens, lengths = texts(generator, [13, 5, 7, 1])
    together = model(tokens, lengths)
    assert together.shape == (4, 3)
    for row, length in enumerate(lengths.tolist()):
        alone = model(tokens[row : row + 1, :length], lengths[row : row + 1])
        torch.testing.assert_close(alone[0], together[row])


def test_layers_of_today_know_positions_by_rotation_alone(generator):
    options = dict(
        rotary="hybrid", qk_norm=True, no_biases=True, rms_norm=True, swiglu=True, encoder_kv_heads=1, short_conv=4
    )
    model = small("softmax + sinkhorn(size=4)", **options, pooling="mean").double()
    assert model.encoder.embed_positions is None
    tokens, lengths = texts(generator, [13, 5, 1])
    together = model(tokens, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = model(tokens[row : row + 1, :length], lengths[row : row + 1])
        torch.testing.assert_close(alone[0], together[row])
    turned = model(tokens[:1].flip(1), lengths[:1])
    assert (turned - together[:1]).abs().max() > 1e-4


def test_two_texts_are_encoded_alike_and_compared(generator):
    model = small(pairs=True).double()
    first, second = texts(generator, [5, 7]), texts(generator, [11, 2])
    logits = model(*first, *second)
    a, b = model.encode(first[0]), model.encode(second[0])
    x = torch.cat([a, b, a * b, a - b], 1)
    for layer in list(model.head)[:-1]:
        x = (x @ layer.weight.t() + layer.bias).clamp(min=0)
    last = model.head[-1]
    torch.testing.assert_close(logits, x @ last.weight.t() + last.bias)
    assert [layer.out_features for layer in model.head] == [20, 10, 3]


def test_the_mean_is_over_real_tokens_and_the_first_token_is_put_before(generator):
    model = small(pooling="mean").double()
    tokens, _ = texts(generator, [6])
    encoded = model.encoder(tokens)["encoder_out"][0][:, 0]
    torch.testing.assert_close(model.encode(tokens)[0], encoded.mean(0))
    model = small().double()
    with_first = torch.cat([torch.zeros(1, 1, dtype=torch.long), tokens], 1)  # <s> is 0
    torch.testing.assert_close(model.encode(tokens)[0], model.encoder(with_first)["encoder_out"][0][0, 0])
    assert model.max_positions() == 19


def test_tied_layers_take_over_other_attention_and_stock_names(generator):
    trained = small(tie_layers=True)
    stock = {name.replace(".mechanism.", "."): value for name, value in trained.state_dict().items()}
    small(tie_layers=True).load_state_dict(stock)
    swapped = small("rfa(features=8)", tie_layers=True)
    swapped.load_state_dict(trained.state_dict())
    assert swapped.attention_swapped
    assert len({id(layer) for layer in swapped.encoder.layers}) == 1
    own = swapped.state_dict()
    for name, value in trained.state_dict().items():
        assert torch.equal(own[name], value), name


def test_tied_layers_are_one_and_gradients_add_up(generator):
    model = small(tie_layers=True, encoder_layers=3).double()
    assert len({id(layer) for layer in model.encoder.layers}) == 1 and len(model.encoder.layers) == 3
    apart = small(encoder_layers=3).double()
    apart.load_state_dict(model.state_dict())
    tokens, lengths = texts(generator, [7, 3])
    for each in (model, apart):
        each(tokens, lengths).square().sum().backward()
    name = "self_attn.mechanism.v_proj.weight"
    sums = sum(layer.get_parameter(name).grad for layer in apart.encoder.layers)
    torch.testing.assert_close(model.encoder.layers[0].get_parameter(name).grad, sums)


@pytest.mark.parametrize("preset, layers, size, tied, longest", [
    ("structured_transformer_classifier_listops", 6, 512, True, 2000),
    ("structured_transformer_classifier_text", 4, 256, False, 4000),
    ("structured_transformer_classifier_retrieval", 4, 128, False, 4000),
])
def test_presets_are_the_arenas(preset, layers, size, tied, longest):
    namespace = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[preset](namespace)
    config = StructuredClassifierConfig(**vars(namespace))
    task = types.SimpleNamespace(source_dictionary=dictionary_of("ab"), labels=["x", "y"], pairs=False)
    model = StructuredClassifier.build_model(config, task)
    assert len(model.encoder.layers) == layers and model.encoder.layers[0].embed_dim == size
    assert (len({id(layer) for layer in model.encoder.layers}) == 1) == tied
    assert model.max_positions() == longest


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Pairs: whether the rarer letter is in both texts."""
    generator, folder = np.random.default_rng(2), tmp_path_factory.mktemp("pairs") / "data"

    def sentences(count):
        for i in range(count):
            sides = [list(generator.choice(["a", "b", "c"], generator.integers(2, 8))) for _ in range(2)]
            if i % 2:
                for side in sides:
                    side[0] = "d"
            yield Labelled("yn"[1 - i % 2], sides[0], sides[1])

    write_sentences(folder, {s: sentences(n) for s, n in (("train", 200), ("valid", 40), ("test", 20))}, ["n", "y"],
                    dict.fromkeys("abcd", 1), {"corpus": "made up"})
    return folder


TRAIN = (
    "--task", "text_classification", "--criterion", "classification_cross_entropy", "--optimizer", "adam", "--lr",
    "0.005", "--batch-size", "20", "--no-epoch-checkpoints", "--log-format", "json", "--update-epoch-batch-itr", "True",
    "--best-checkpoint-metric", "accuracy", "--maximize-best-checkpoint-metric",
)


@pytest.mark.training
def test_pairs_through_the_front_door(data, tmp_path):
    assert read_meta(data)["pairs"]
    log = fairseq(
        "train", data, *TRAIN, "--arch", "structured_transformer_classifier", "--encoder-self-attention",
        "abc_mlp(slots=3)", *sizes("encoder", dim=16, inner=32, heads=2), "--pooling", "mean", "--max-epoch", 6,
        "--save-dir", tmp_path,
    )
    best = max(float(x) for x in re.findall(r'"valid_accuracy": "([\d.]+)"', log))
    assert best > 90
    printed = fairseq(
        "validate", data, "--task", "text_classification", "--path", tmp_path / "checkpoint_best.pt", "--valid-subset",
        "valid", "--batch-size", 7, "--log-format", "json",
    )
    assert float(re.search(r'"valid_accuracy": "?([\d.]+)', printed)[1]) == pytest.approx(best, abs=1e-3)
    assert any("abc" in key or "tied" in key for key in load_checkpoint(tmp_path / "checkpoint_last.pt")["model"])


def test_wrong_input(data, tmp_path):
    with pytest.raises(ValueError, match="rnn_classifier labels single texts, and .* has pairs"):
        fairseq("train", data, *TRAIN, "--arch", "rnn_classifier", "--save-dir", tmp_path)
    with pytest.raises(ValueError, match="max_length: expected 1 or more, got 0"):
        TextClassificationTask.setup_task(TextClassificationConfig(data=str(data), max_length=0))
    with pytest.raises(ValueError, match="an even number of 2 or more for pairs, got 7"):
        small(pairs=True, classifier_hidden_size=7)
    with pytest.raises(ValueError, match="classifier_hidden_size: expected 1 or more, got 0"):
        small(classifier_hidden_size=0)
    with pytest.raises(ValueError, match="encoder_layers: expected 1 or more, got 0"):
        small(encoder_layers=0)
    with pytest.raises(ValueError, match="expected one mechanism for all layers"):
        small("softmax + linear", tie_layers=True)
    with pytest.raises(ValueError, match="21 tokens: the model has 20 positions"):
        small()(torch.full((1, 20), 4), torch.tensor([20]))


def test_texts_are_cut(data):
    task = TextClassificationTask.setup_task(TextClassificationConfig(data=str(data), max_length=3))
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    assert dataset.sizes.max() == 3
    batch = dataset.collater([dataset[i] for i in range(5)])
    assert batch["net_input"]["second_tokens"].size(1) <= 3
    lengths = batch["net_input"]["src_lengths"].sum() + batch["net_input"]["second_lengths"].sum()
    assert batch["ntokens"] == lengths
    with pytest.raises(ValueError, match="2 first sentences of pairs, 1 second ones"):
        type(dataset)([torch.tensor([4])] * 2, [0, 1], 1, False, [torch.tensor([4])])
    with pytest.raises(ValueError, match="sentence 1 is empty"):
        type(dataset)([torch.tensor([4])] * 2, [0, 1], 1, False, [torch.tensor([4]), torch.tensor([])])
