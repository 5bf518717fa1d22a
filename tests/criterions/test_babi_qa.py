"""Exact sequences of supporting facts."""

import torch

from seqstruct.criterions.babi_qa import right_facts


def test_a_sequence_is_right_only_as_a_whole():
    found = torch.tensor([[[0, 1], [1, 0], [0, 1], [0, 1], [0, -1], [-1, -1]]])
    support = torch.tensor([[[0, 1, -1], [0, 1, -1], [0, 1, 2], [0, -2, -1], [0, -1, -1], [-2, -2, -1]]])
    assert right_facts(found, support).tolist() == [[True, False, False, False, True, False]]


def test_more_steps_than_any_question_has_facts():
    assert not right_facts(torch.zeros(2, 3, 2, dtype=torch.long), torch.zeros(2, 3, 1, dtype=torch.long)).any()
