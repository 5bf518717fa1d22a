"""Reading bAbI stories: what comes out, and what is refused with file and line."""

from __future__ import annotations

import pytest

from seqstruct.data.babi.folder import write_folder
from seqstruct.data.babi.stories import TASKS, file_name, read_questions, vocabulary_of, words_of
from tests.data.babi.stories_text import OTHER, STORY


def written(folder, text):
    path = folder / "stories.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_questions_facts_and_supports(tmp_path):
    first, second, third = read_questions(written(tmp_path, STORY + OTHER))
    assert first.facts == (("mary", "moved", "to", "the", "bathroom"), ("john", "went", "to", "the", "hallway"))
    assert (first.answer, first.support, first.line) == ("bathroom", (1,), 3)
    assert first.question == ("where", "is", "mary")
    assert second.numbers == (1, 2, 4)
    assert (second.answer, second.support) == ("n,w", (4, 2))
    assert (third.line, len(third.facts)) == (8, 2)


def test_a_fact_that_the_memory_has_lost_has_no_place(tmp_path):
    second = read_questions(written(tmp_path, STORY))[1]
    assert second.support_from_newest(25) == (0, 1)
    assert second.support_from_newest(1) == (0, -1)


def test_an_answer_is_one_word_of_the_vocabulary(tmp_path):
    words = vocabulary_of(read_questions(written(tmp_path, STORY)))
    assert words == sorted(set(words))
    assert "n,w" in words and "n" not in words and "bathroom" in words
    assert words_of("What is emily's?") == ("what", "is", "emily's")


@pytest.mark.parametrize(("text", "message"), [
    ("1 A fact.\n\n", "line 2: expected a number and a sentence, got ''"),
    ("01 A fact.\n", "line 1: expected a number and a sentence, got '01 A fact.'"),
    ("Mary moved.\n", "line 1: expected a number"),
    ("2 Mary moved.\n", "line 1: expected the number 1 or 1"),
    ("1 A fact.\n3 Another.\n", "line 2: expected the number 2 or 1, got 3"),
    ("1 Where is Mary?\thall\t1\n", "line 1: a question before any fact"),
    ("1 A fact.\n2 Where?\thall\n", "line 2: expected a question, its answer"),
    ("1 A fact.\n2 Where?\t \t1\n", "line 2: expected a question, its answer"),
    ("1 A fact.\n2 Where?\thall\tone\n", "line 2: expected numbers of supporting facts, got 'one'"),
    ("1 A fact.\n2 Where?\thall\t7\n", "line 2: supporting fact 7 is no fact"),
    ("1 A fact.\n2 Where?\thall\t1\n3 Where?\thall\t2\n", "line 3: supporting fact 2 is no fact"),
    ("1 A fact.\n", "expected questions, found none"),
])
def test_refuses_with_file_and_line(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match="stories.txt") as caught:
        read_questions(path)
    assert message in str(caught.value)


def test_tasks_are_found_by_number(tmp_path):
    with pytest.raises(ValueError, match="expected a task from 1 to 20, got 21"):
        file_name(21, "train")
    with pytest.raises(ValueError, match="qa2_two-supporting-facts_train.txt: no such file"):
        write_folder(tmp_path, 2, tmp_path / "out")


def test_all_official_files_are_read(reference):
    for task in TASKS:
        for split in ("train", "test"):
            questions = read_questions(reference / "data" / "babi" / file_name(task, split))
            assert len(questions) == 1000
    questions = read_questions(reference / "data" / "babi" / file_name(3, "test"))
    lost = [-1 in q.support_from_newest(25) for q in questions]
    assert sum(lost) == 7
