"""The loss of adaptive softmax is that of its log-probabilities, of every word."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.adaptive_loss import AdaptiveLoss
from fairseq.modules import AdaptiveSoftmax
from torch import Tensor

PAD = 1


class Model(torch.nn.Module):
    def __init__(self, cutoffs: list[int], target: Tensor) -> None:
        super().__init__()
        self.decoder = torch.nn.Module()
        self.decoder.adaptive_softmax = AdaptiveSoftmax(12, 6, cutoffs, 0.0, factor=2)
        self.features = torch.nn.Parameter(torch.randn(*target.shape, 6))
        self.target = target

    def forward(self) -> tuple[Tensor, None]:
        return self.features, None

    def get_targets(self, sample: dict, output: tuple[Tensor, None]) -> Tensor:
        return self.target


def criterion_of(sentence_avg: bool = False) -> AdaptiveLoss:
    return AdaptiveLoss(SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD)), sentence_avg)


@pytest.mark.parametrize("cutoffs", [[5, 8], [4], [1, 3]], ids=str)
@pytest.mark.parametrize("sentence_avg", [False, True])
def test_loss_of_every_word(cutoffs: list[int], sentence_avg: bool) -> None:
    """The second words of the bands, 6 and 9 of 5, 8, are as padding in theirs."""
    torch.manual_seed(1)
    target = torch.tensor([[*range(12)], [*range(11, 2, -1), PAD, PAD, PAD]])
    model, real = Model(cutoffs, target), target != PAD
    with torch.no_grad():
        log_probs = model.decoder.adaptive_softmax.get_log_prob(model.features, None)
    expected = -log_probs.gather(2, target.unsqueeze(2)).squeeze(2) * real
    loss, size, log = criterion_of(sentence_avg)(model, {"net_input": {}})
    torch.testing.assert_close(loss, expected.sum())
    assert (log["ntokens"], log["nsentences"], size) == (20, 2, 2 if sentence_avg else 20)
    each, _, _ = criterion_of(sentence_avg)(model, {"net_input": {}}, reduce=False)
    torch.testing.assert_close(each.view_as(target), expected)
    loss.backward()
    assert (model.features.grad.abs().sum(2) > 0).equal(real)


def test_models_without_it_are_refused() -> None:
    with pytest.raises(ValueError, match="needs a model with --adaptive-softmax-cutoff"):
        criterion_of()(torch.nn.Module(), {"net_input": {}})
