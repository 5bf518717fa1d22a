"""Encoding of questions, and batches of several seeds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqstruct.data.babi.dataset import StackedQuestions, encode
from seqstruct.data.babi.stories import read_questions, vocabulary_of
from tests.data.babi.stories_text import OTHER, STORY


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "stories.txt"
    found.write_text((STORY + OTHER) * 5, encoding="utf-8")
    return found


def vocabulary(path):
    return {word: number for number, word in enumerate(vocabulary_of(read_questions(path)))}


def test_ids_lead_back_to_the_words(path):
    questions, words = read_questions(path), vocabulary(path)
    back = {number: word for word, number in words.items()}
    encoded = encode(questions, words, 2, path)
    sentence = [tuple(back[i] for i in row if i >= 0) for row in encoded.sentences]
    assert len(set(sentence)) == len(sentence) == 8
    for n, question in enumerate(questions):
        assert sentence[encoded.question[n]] == question.question
        assert tuple(sentence[i] for i in encoded.facts[n] if i >= 0) == question.facts[::-1][:2]
        assert back[encoded.answer[n]] == question.answer
    assert encoded.support[1].tolist() == [0, 1]
    assert encode(questions, words, 1, path).support[1].tolist() == [0, -2]
    assert encoded.support[0].tolist() == [1, -1]


def test_what_the_vocabulary_does_not_have_is_refused_with_file_and_line(path):
    words = vocabulary(path)
    with pytest.raises(ValueError, match=r"stories.txt: line 5: the answer 'n,w' is not in the vocabulary"):
        encode(read_questions(path), {w: i for w, i in words.items() if w != "n,w"}, 25, path)
    with pytest.raises(ValueError, match=r"stories.txt: in or before line 5: the word 'milk' is not"):
        encode(read_questions(path), {w: i for w, i in words.items() if w != "milk"}, 25, path)


def test_a_data_loader_goes_on_where_no_order_is_drawn(path):
    """Its workers never hear of another epoch."""
    questions = encode(read_questions(path), vocabulary(path), 25, path)
    drawn, fixed = (StackedQuestions(questions, [1], shuffle=shuffle) for shuffle in (True, False))
    assert (drawn.can_reuse_epoch_itr_across_epochs, fixed.can_reuse_epoch_itr_across_epochs) == (False, True)


def test_a_seed_sees_the_same_batches_alone_and_beside_others(path):
    questions = encode(read_questions(path), vocabulary(path), 25, path)
    together = StackedQuestions(questions, [3, 4, 9], shuffle=True)
    for place, seed in enumerate([3, 4, 9]):
        alone = StackedQuestions(questions, [seed], shuffle=True)
        for epoch in (1, 7):
            together.set_epoch(epoch)
            alone.set_epoch(epoch)
            a, b = together.collater([2, 5, 11]), alone.collater([2, 5, 11])
            for one, other in ((a["target"], b["target"]), (a["support"], b["support"]), (a["id"], b["id"]),
                               (a["net_input"]["question"], b["net_input"]["question"])):
                torch.testing.assert_close(one[place], other[0])
            M = b["net_input"]["facts"].size(2)
            torch.testing.assert_close(a["net_input"]["facts"][place, :, :M], b["net_input"]["facts"][0])
    orders = [np.sort(order).tolist() for order in together.order]
    assert orders == [list(range(len(together)))] * 3
    assert not np.array_equal(together.order[0], together.order[1])


def test_evaluation_keeps_the_order_of_the_file(path):
    questions = encode(read_questions(path), vocabulary(path), 25, path)
    batch = StackedQuestions(questions, [1, 2], shuffle=False).collater([0, 1, 2])
    assert batch["id"].tolist() == [[0, 1, 2]] * 2
    assert batch["net_input"]["facts"].shape == (2, 3, 3)
    assert batch["nsentences"] == 3
    assert StackedQuestions(questions, [1], shuffle=False).collater([]) == {}
