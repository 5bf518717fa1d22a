"""The penalties and the supervised attention, term by term."""

import math
import types

import pytest
import torch

from seqstruct.criterions.regularized_cross_entropy import RegularizedCrossEntropy, span_cross_entropy
from tests.models.building import dictionary_of, task_of

V = 5 + 4


class Fixed(torch.nn.Module):
    """Logits and extra output as given."""

    def __init__(self, logits, **extra):
        super().__init__()
        self.logits, self.extra = logits, extra

    def forward(self, **_):
        return self.logits, self.extra

    def get_normalized_probs(self, output, log_probs, sample=None):
        return output[0].log_softmax(-1)

    def get_targets(self, sample, output):
        return sample["target"]


@pytest.fixture
def setting(generator):
    logits = torch.randn(2, 4, V, dtype=torch.double, generator=generator)
    raw, dropped = torch.randn(2, 2, 4, 3, dtype=torch.double, generator=generator)
    target = torch.tensor([[4, 5, 6, 7], [8, 4, 1, 1]])
    scores = torch.randn(2, 4, 3, dtype=torch.double, generator=generator)
    there = torch.ones(2, 4, 3, dtype=torch.bool)
    model = Fixed(logits, raw=raw, dropped=dropped, span_scores=scores, span_mask=there)
    gold = torch.tensor([[0, 0b110, 0b010, 0], [0b100, 0, 0, 0]])
    return model, {"net_input": {}, "target": target, "ntokens": 6, "gold_spans": gold}


def criterion(alpha=0.0, beta=0.0, span_supervision=0.0):
    return RegularizedCrossEntropy(task_of(dictionary_of("abcde")), alpha, beta, span_supervision)


def plain(model, target):
    log_probs = model.logits.log_softmax(-1)
    return -sum(log_probs[b, t, target[b, t]] for b in range(2) for t in range(4) if target[b, t] != 1)


def test_each_term_by_hand(setting):
    model, sample = setting
    model.train()
    nll = plain(model, sample["target"])
    real = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
    dropped, raw, scores = (model.extra[name] for name in ("dropped", "raw", "span_scores"))
    squares = torch.stack([dropped[b, t].square() for b, t in real]).mean()
    steps = torch.stack([(raw[b, t] - raw[b, t - 1]).square() for b, t in real if t]).mean()
    log = scores.log_softmax(-1)
    spans = -(log[0, 1, 1] + log[0, 1, 2]) / 2 - log[0, 2, 1] - log[1, 0, 2]
    for weights, expected in (
        ((), nll), ((2.0,), nll + 12 * squares), ((0.0, 3.0), nll + 18 * steps), ((0.0, 0.0, 0.5), nll + 0.5 * spans),
    ):
        loss, size, log_output = criterion(*weights)(model, sample)
        torch.testing.assert_close(loss, expected)
        assert size == 6
        torch.testing.assert_close(log_output["nll_loss"], nll)
    model.eval()
    torch.testing.assert_close(criterion(2.0, 3.0, 0.5)(model, sample)[0], nll)
    assert criterion(2.0, 3.0, 0.5)(model, sample)[2]["span_loss"] > 0


def test_a_segment_of_padding_has_no_penalty(setting):
    model, sample = setting
    padding = {**sample, "target": torch.full((2, 4), 1), "ntokens": 0}
    loss, size, log = criterion(2.0, 3.0)(model.train(), padding)
    assert loss == 0 and size == 0 and all(log[name] == 0 for name in ("loss", "nll_loss", "activation_penalty"))


def test_spans_that_are_not_there_are_no_target(generator):
    scores = torch.randn(1, 1, 4, generator=generator)
    there = torch.tensor([[[True, True, True, False]]])
    log = scores[0, 0, :3].log_softmax(0)
    for bits, expected in ((0b1100, -log[2]), (0b1000, torch.tensor(0.0)), (1 << 40 | 0b10, -log[1])):
        torch.testing.assert_close(span_cross_entropy(scores, there, torch.tensor([[bits]]))[0, 0], expected)
    nothing = span_cross_entropy(scores.requires_grad_(), torch.zeros_like(there), torch.tensor([[0b11]]))
    nothing.sum().backward()
    assert nothing.item() == 0 and scores.grad.isfinite().all()
    with pytest.raises(ValueError, match="at most 63 words; the model attends to spans of 64"):
        span_cross_entropy(torch.zeros(1, 1, 64), torch.ones(1, 1, 64, dtype=torch.bool), torch.tensor([[2]]))


def test_what_a_weight_needs_is_asked_for(setting):
    model, sample = setting
    bare = Fixed(model.logits)
    with pytest.raises(ValueError, match="raw and dropped"):
        criterion(alpha=1.0)(bare, sample)
    with pytest.raises(ValueError, match="span_language_modeling"):
        criterion(span_supervision=1.0)(model, {k: v for k, v in sample.items() if k != "gold_spans"})
    for weight in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"activation_penalty: expected a finite number, 0 or more, got {weight}"):
            criterion(alpha=weight)
    assert criterion()(bare, types.MappingProxyType(sample))[1] == 6
