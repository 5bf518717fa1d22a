"""AWD-LSTM, PaLM, ON-LSTM and PRPN: in parts as in one, against their definitions, and what is refused."""

from __future__ import annotations

import pytest
import torch

from seqstruct.bridge.passes import CarriedState
from seqstruct.layers.recurrent import RecurrentLayer
from seqstruct.models.language_models.awd_lstm import AWDLSTMConfig, AWDLSTMLanguageModel
from seqstruct.models.language_models.on_lstm import ONLSTMConfig, ONLSTMLanguageModel
from seqstruct.models.language_models.palm import PaLM, PaLMConfig
from seqstruct.models.language_models.prpn import PRPN, PRPNConfig
from seqstruct.ops.dropout import drop
from seqstruct.ops.trees import split_by_distances
from tests.models.building import dictionary_of, task_of

DICTIONARY = dictionary_of("abcdefgh")
KINDS = {
    "awd_lstm": (AWDLSTMLanguageModel, AWDLSTMConfig, {}),
    "palm": (PaLM, PaLMConfig, {"span_size": 6, "max_span": 4}),
    "palm_right": (PaLM, PaLMConfig, {"span_size": 6, "max_span": 4, "right_branching": True}),
    "palm_last": (PaLM, PaLMConfig, {"span_size": 6, "max_span": 4, "attention_layer": 3}),
    "on_lstm": (ONLSTMLanguageModel, ONLSTMConfig, {"chunk_size": 5}),
    "prpn": (PRPN, PRPNConfig, {"memory_slots": 3, "lookback": 2, "inverse_temperature": 1.0}),
}
PARSERS = [kind for kind in KINDS if kind != "awd_lstm"]


def build(kind, **options):
    """A small model in double precision, in evaluation."""
    model, config, own = KINDS[kind]
    cfg = config()
    for name, value in {"decoder_embed_dim": 10, "hidden_size": 15, **own, **options}.items():
        assert hasattr(cfg, name)
        setattr(cfg, name, value)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        return model.build_model(cfg, task_of(DICTIONARY)).double().eval()


def draw(generator, *shape):
    return torch.randint(DICTIONARY.nspecial, len(DICTIONARY), shape, generator=generator)


@pytest.mark.parametrize("kind", KINDS)
def test_segments_and_steps_give_what_one_pass_gives(generator, kind):
    model, tokens = build(kind), draw(generator, 3, 13)
    whole, _ = model(tokens)
    carried = CarriedState()
    parts = [model(part, carried=carried)[0] for part in tokens.split([5, 1, 7], 1)]
    torch.testing.assert_close(torch.cat(parts, 1), whole)
    saved = {}
    steps = [model.decoder(tokens[:, : t + 1], incremental_state=saved)[0] for t in range(13)]
    torch.testing.assert_close(torch.cat(steps, 1), whole)
    assert model(tokens[:, :0])[0].shape == (3, 0, len(DICTIONARY))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_reordered_within_decoding(generator, kind):
    model, tokens = build(kind), draw(generator, 4, 7)
    saved, order = {}, torch.tensor([2, 0])
    model.decoder(tokens[:, :4], incremental_state=saved)
    model.decoder.reorder_incremental_state(saved, order)
    after, _ = model.decoder(tokens[order, :5], incremental_state=saved)
    torch.testing.assert_close(after, model(tokens[order, :5])[0][:, 4:])


@pytest.mark.parametrize("kind", KINDS)
def test_the_future_and_other_rows_are_invisible(generator, kind):
    model, tokens = build(kind), draw(generator, 3, 9)
    whole, _ = model(tokens)
    changed = torch.cat([tokens[:, :5], draw(generator, 3, 4)], 1)
    torch.testing.assert_close(model(changed)[0][:, :5], whole[:, :5])
    torch.testing.assert_close(model(tokens[1:2])[0], whole[1:2])


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_has_a_gradient(generator, kind):
    model = build(kind).train()
    _, extra = output = model(draw(generator, 3, 9))
    (output[0].square().sum() + extra["raw"].square().sum()).backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("whole", [True, False], ids=["module", "autocast"])
def test_few_digits_are_close(generator, kind, dtype, whole):
    model, tokens = build(kind), draw(generator, 3, 13)
    exact, _ = model(tokens)
    model = model.to(dtype if whole else torch.float32)
    with torch.autocast("cpu", dtype, enabled=not whole):
        found, _ = model(tokens)
    assert (found.double() - exact).abs().max() < 0.05 * exact.abs().max()
    found.float().logsumexp(2).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


def test_weights_are_tied():
    model = build("palm")
    features = torch.eye(10, dtype=torch.double).unsqueeze(0)
    expected = model.decoder.embed_tokens.weight.t() + model.decoder.output_bias
    torch.testing.assert_close(model.decoder.output_layer(features)[0], expected)


def test_recurrent_weights_are_dropped_once_for_all_steps(generator):
    layer = RecurrentLayer("lstm", 5, 7, weight_dropout=0.5).double()
    x = torch.randn(3, 13, 5, dtype=torch.double, generator=generator)
    state = layer.initial_state(3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        hidden, _ = layer(x, state)
        torch.manual_seed(3)
        dropped = drop(layer.weight_hh, 0.5)
    assert (dropped == 0).float().mean() > 0.3
    h, c = state
    for t in range(13):
        i, f, g, o = (x[:, t] @ layer.weight_ih.t() + h @ dropped.t() + layer.bias).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        torch.testing.assert_close(hidden[:, t], h)


def test_words_are_dropped_whole(generator):
    model = build("awd_lstm", embedding_dropout=0.5, input_dropout=0.0).train()
    tokens = draw(generator, 4, 50)
    vectors = model.decoder.embed(tokens)
    for word in tokens.unique():
        found = vectors[tokens == word]
        expected = 2 * model.decoder.embed_tokens.weight[word]
        assert torch.equal(found, torch.zeros_like(found)) or torch.equal(found, expected.expand_as(found))
    assert (vectors == 0).all(2).any() and not (vectors == 0).all()


def spans_read_alone(attention, words, size):
    """Both representations of words i .. j, read word by word."""
    onward, back = (layer(words) for layer in (attention.forward_layer, attention.backward_layer))
    found = []
    for direction, projected in ((0, onward), (1, back)):
        state = words.new_zeros(size)
        for row in projected.flip(0) if direction else projected:
            gate = (row[:size] + attention.gate_bias[direction]).sigmoid()
            state = gate * state + (1 - gate) * row[size:].tanh()
        found.append(state)
    return torch.cat(found)


def test_palm_attends_over_the_spans_before_each_word(generator):
    """Eq. 3.5 and D.1, span by span."""
    model = build("palm")
    attention = model.decoder.rnn.layers[1].attention
    torch.nn.init.uniform_(attention.gate_bias, -1.0, 1.0, generator=generator)
    hidden = torch.randn(1, 9, 15, dtype=torch.double, generator=generator)
    nothing = hidden.new_zeros(1, 4, 15), torch.ones(1, 4, dtype=torch.bool)
    after, scores, there = attention(hidden, *nothing)
    h = hidden[0]
    for t in range(9):
        starts = range(t - 1, max(-1, t - 5), -1)
        assert there[0, t].sum() == len(starts)
        reading = torch.zeros(12, dtype=torch.double)
        if len(starts):
            spans = torch.stack([spans_read_alone(attention, h[i:t], 6) for i in starts])
            inner = (attention.score_hidden(h[t]) + attention.score_span(spans)).tanh()
            expected = attention.score_layer(inner).squeeze(1)
            torch.testing.assert_close(scores[0, t, : len(starts)], expected)
            reading = expected.softmax(0) @ spans
        both = torch.cat([h[t], reading])
        gate = attention.gate_layer(both).sigmoid()
        torch.testing.assert_close(after[0, t], gate * attention.combine_layer(both).tanh() + (1 - gate) * h[t])


def test_palm_scores_all_spans_of_a_sentence(generator):
    """The scores of short spans are those of language modeling, whatever the maximum there."""
    model, sentence = build("palm"), draw(generator, 11)
    square = model.decoder.span_scores(sentence)
    tokens = torch.nn.functional.pad(sentence, (1, 1), value=DICTIONARY.eos()).unsqueeze(0)
    _, extra = model(tokens)
    for j in range(11):
        for back in range(min(4, j + 1)):
            torch.testing.assert_close(square[j - back, j], extra["span_scores"][0, j + 2, back])
    longer = build("palm", max_span=11)
    longer.load_state_dict(model.state_dict())
    torch.testing.assert_close(square, longer.decoder.span_scores(sentence))


def test_fixed_scores_make_right_branching_trees(generator):
    splits = build("palm_right").decoder.splits(draw(generator, 9))
    assert splits == [(i, i + 1, 8) for i in range(8)]


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("length", [0, 1, 2, 13])
def test_sentences_of_any_length_have_trees(generator, kind, length):
    splits = build(kind).decoder.splits(draw(generator, length))
    assert len(splits) == max(0, length - 1)


@pytest.mark.parametrize("kind", ["on_lstm", "prpn"])
def test_trees_come_from_the_distances_of_the_words(generator, kind):
    model, sentence = build(kind), draw(generator, 7)
    tokens = torch.nn.functional.pad(sentence, (1, 0), value=DICTIONARY.eos()).unsqueeze(0)
    distances = model(tokens)[1]["1.distances" if kind == "on_lstm" else "distances"]
    assert model.decoder.splits(sentence) == split_by_distances(distances[0, 1:])
    with pytest.raises(ValueError, match="no score of a left span"):
        model.decoder.splits(sentence, add_left=True)


def test_prpn_reads_nothing_where_no_word_is(generator):
    """Before the first word S slots are empty; what stands there has no weight beside any word."""
    stack = build("prpn").decoder.rnn
    vectors = torch.randn(2, 4, 10, dtype=torch.double, generator=generator)
    _, state, _ = stack(vectors[:, :2], stack.initial_state(2))
    after, _, _ = stack(vectors[:, 2:], state)
    assert state.there.tolist() == [[False, True, True]] * 2
    marked = tuple(torch.cat([memory[:, :1] + 1, memory[:, 1:]], 1) for memory in state.memories)
    torch.testing.assert_close(stack(vectors[:, 2:], state._replace(memories=marked))[0], after, rtol=0, atol=0)
    everywhere = state._replace(memories=marked, there=torch.ones_like(state.there))
    assert not torch.equal(stack(vectors[:, 2:], everywhere)[0], after)


@pytest.mark.parametrize(
    ("kind", "options", "what"),
    [
        ("awd_lstm", {"weight_dropout": 1.0}, "weight_dropout: expected 0 or more and below 1, got 1.0"),
        ("awd_lstm", {"decoder_layers": 0}, "decoder_layers: expected 1 or more, got 0"),
        ("palm", {"max_span": 0}, "max_span: expected 1 or more, got 0"),
        ("palm", {"attention_layer": 4}, "attention_layer: expected 1 to 3, got 4"),
        ("on_lstm", {"chunk_size": 4}, "divisor of the layer's size 15, got 4"),
        ("on_lstm", {"distance_layer": 0}, "distance_layer: expected 1 to 3, got 0"),
        ("prpn", {"memory_slots": 0}, "memory_slots: expected 1 or more, got 0"),
        ("prpn", {"inverse_temperature": 0.0}, "inverse_temperature: expected a positive number"),
    ],
)
def test_what_is_out_of_range_is_refused(kind, options, what):
    with pytest.raises(ValueError, match=what):
        build(kind, **options)


def test_the_published_sizes_have_the_published_numbers_of_parameters():
    """Tables 3.1 and 3.2: 24M on PTB (10,000 types), 33M and 36M on WikiText-2 (33,278), 25M for ON-LSTM."""

    def millions(model, cfg, types):
        sizes = task_of(dictionary_of([f"w{i}" for i in range(types)]))
        with torch.device("meta"):
            return round(sum(p.numel() for p in model.build_model(cfg, sizes).parameters()) / 1e6)

    assert millions(AWDLSTMLanguageModel, AWDLSTMConfig(), 10_000) == 24
    assert millions(PaLM, PaLMConfig(), 10_000) == 25  # 24.6; the size of the scores' MLP is not published
    assert millions(ONLSTMLanguageModel, ONLSTMConfig(), 10_000) == 25
    assert millions(AWDLSTMLanguageModel, AWDLSTMConfig(), 33_278) == 34
