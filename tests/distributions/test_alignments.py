"""Alignments beside what torch has, and the sums over their beginnings."""

from __future__ import annotations

import pytest
import torch

from seqstruct import distributions as D

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def test_the_loss_of_ctc_is_torchs(generator):
    logits = torch.randn(3, 7, 5, generator=generator, dtype=torch.float64).requires_grad_()
    log_probs = logits.log_softmax(2)
    targets = torch.tensor([[1, 1, 2], [3, 1, 1], [4, 2, 1]])
    lengths, widths = torch.tensor([7, 5, 1]), torch.tensor([3, 2, 0])
    found = -D.Alignment.ctc(log_probs, targets, lengths=lengths, target_lengths=widths).log_partition()
    wanted = torch.nn.functional.ctc_loss(log_probs.transpose(0, 1), targets, lengths, widths, reduction="none")
    torch.testing.assert_close(found, wanted, **CLOSE)
    gradients = [torch.autograd.grad(x.sum(), logits, retain_graph=True)[0] for x in (found, wanted)]
    torch.testing.assert_close(*gradients, **CLOSE)
    padded = targets.masked_fill(torch.arange(3) >= widths.unsqueeze(1), -1)
    same = D.Alignment.ctc(log_probs, padded, lengths=lengths, target_lengths=widths)
    assert torch.equal(same.log_partition(), -found)
    for wrong in ({"targets": padded}, {"targets": targets + 1}, {"targets": targets, "blank": 5}):
        with pytest.raises(ValueError, match="expected blank and targets from 0 to 4, got"):
            D.Alignment.ctc(log_probs, **wrong)


def test_prefixes_are_log_partitions_of_shorter_alignments(generator):
    scores = torch.randn(2, 4, 3, 3, generator=generator, dtype=torch.float64)
    found = D.Alignment(scores, kind="edit").prefixes()
    for i in range(4):
        for j in range(3):
            shorter = D.Alignment(scores[:, : i + 1, : j + 1], kind="edit")
            torch.testing.assert_close(found[:, i, j], shorter.log_partition(), **CLOSE)
    with pytest.raises(ValueError, match="only alignments by edits have prefixes"):
        D.Alignment(scores[..., 0]).prefixes()


def test_divergences_of_what_has_other_alignments_are_refused(generator):
    draw = torch.randn(2, 4, 5, generator=generator, dtype=torch.float64)

    def ctc(*skips, widths=(5, 3)):
        return D.Alignment(draw, kind="ctc", may_skip=torch.tensor(skips) > 0, widths=torch.tensor(widths))

    p = ctc(0, 0, 1, 1, 0)
    more = ctc(1, 0, 1, 1, 1)  # has all that p has
    torch.testing.assert_close(p.kl_divergence(more), more.log_partition() - p.log_partition(), **CLOSE)
    narrow = ctc(0, 0, 1, 1, 1, widths=(3, 3))
    assert not narrow.kl_divergence(ctc(1, 1, 1, 1, 0, widths=(3, 3))).any()  # which differ where nothing can skip
    edits = draw.unsqueeze(3).expand(-1, -1, -1, 3)
    short, long = (D.Alignment(edits, kind="edit", widths=torch.tensor(x)) for x in ([2, 4], [3, 4]))
    for one, other in (
        (p, ctc(0, 0, 1, 0, 0)),
        (D.Alignment(draw), p),
        (p, D.Alignment(draw)),
        (narrow, ctc(0, 0, 1, 1, 1)),  # ends before the other's last two columns
        (short, long),
    ):
        for divergence in (one.kl_divergence, one.cross_entropy):
            with pytest.raises(ValueError, match="over the same structures, got Alignment of .* other options"):
                divergence(other)
    assert long.kl_divergence(short)[0] == torch.inf and long.kl_divergence(short)[1] == 0


def test_kinds_that_do_not_fit_are_refused():
    scores = torch.zeros(2, 4, 5)
    wrong = (
        ({"kind": "free"}, "expected a kind of"),
        ({"kind": "ctc"}, "may_skip"),
        ({"kind": "edit"}, r"T\+1 S\+1 3"),
        ({"widths": torch.tensor([6, 1])}, "widths"),
    )
    for options, said in wrong:
        with pytest.raises(ValueError, match=said):
            D.Alignment(scores, **options)


def test_even_widths_of_ctc_are_refused():
    for columns, widths in ((4, None), (5, torch.tensor([5, 2]))):
        with pytest.raises(ValueError, match="expected odd widths of the kind ctc, got"):
            D.Alignment(torch.zeros(2, 3, columns), kind="ctc", may_skip=torch.zeros(columns) > 0, widths=widths)
