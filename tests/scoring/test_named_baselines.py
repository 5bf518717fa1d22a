"""Baselines of prepared folders, against small folders whose numbers are plain."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from seqstruct.cli import main
from seqstruct.data.cfl.folder import StringsRequest as Strings
from seqstruct.data.cfl.folder import read_meta, read_split, write_folder
from seqstruct.data.nli.read import SentencePair
from seqstruct.data.parsing.folder import Annotated
from seqstruct.data.parsing.folder import write_folder as write_parsing
from seqstruct.data.parsing.sentence import TOP, AnnotatedSentence
from seqstruct.data.text_classification.folder import Labelled, write_sentences
from seqstruct.data.tree_transduction.folder import FormulasRequest as Formulas
from seqstruct.data.tree_transduction.folder import write_folder as write_formulas
from seqstruct.scoring.baselines import KneserNey
from seqstruct.scoring.named_baselines import measure
from seqstruct.scoring.translation import score


def values(found):
    return {m.metric: m.value for m in found}


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


@pytest.fixture
def text(tmp_path):
    return write(tmp_path, text__train_dot_txt="a b@@ c\na a\nrare c\n", text__valid_dot_txt="a c\n",
                 text__test_dot_txt="b@@ c unseen\n\n", bin__dict_dot_txt="a 3\nc 2\nb@@ 1\n")


@pytest.mark.parametrize("name, order", [("bigram", 2), ("trigram", 3), ("5-gram", 5)])
def test_perplexity_is_of_words_over_the_dictionary_s_types(text, name, order):
    lines = ["a b@@ c </s>".split(), "a a </s>".split(), "<unk> c </s>".split()]
    test = ["b@@ c <unk> </s>".split(), ["</s>"]]
    found = values(measure(name, text))
    nats = -KneserNey([sum(lines, [])], order).log_probabilities([sum(test, [])]).sum()
    assert found["test_perplexity"] == pytest.approx(math.exp(nats / 4), rel=1e-12)  # "b@@ c" is one word
    assert set(found) == {"validation_perplexity", "test_perplexity"}
    by_piece = values(measure(name, text, pieces=True))
    assert by_piece["test_perplexity"] == pytest.approx(math.exp(nats / 5), rel=1e-12)
    nats = -KneserNey(lines, order, 0.75).log_probabilities(test).sum()
    by_sentence = values(measure(name, text, sentences=True, discount=0.75))
    assert by_sentence["test_perplexity"] == pytest.approx(math.exp(nats / 4), rel=1e-12)


def test_strings_stand_above_their_true_distribution(tmp_path):
    write_folder(Strings("dyck", train=200, valid=20, test_per_length=3, lengths=(4, 9), test_lengths=(4, 11)),
                 tmp_path / "dyck")
    found = {m.metric: m for m in measure("5-gram", tmp_path / "dyck")}
    meta = read_meta(tmp_path / "dyck")
    train, test = (read_split(tmp_path / "dyck", split, meta) for split in ("train", "test"))
    model = KneserNey([[*map(str, s), "</s>"] for s in train.strings], 5)
    above = {}
    for string, known in zip(test.strings, test.log_probability, strict=True):
        loss = -model.log_probabilities([[*map(str, string), "</s>"]]).sum()
        above.setdefault(len(string), []).append(loss + known)
    symbols = sum(len(string) + 1 for string in test.strings)
    of_lengths = len(test.strings) * math.log(meta["valid_length_counts"]["test"])
    whole = (sum(map(sum, above.values())) - of_lengths) / symbols
    assert found["test_cross_entropy_difference"].value == pytest.approx(whole, rel=1e-12)
    by_length = dict(found["test_cross_entropy_difference"].points)
    assert by_length == pytest.approx({n: np.mean(v) / (n + 1) for n, v in above.items()}, rel=1e-12)


def test_classes_of_texts(tmp_path):
    def sentences(*lines):
        return [Labelled(line.split()[0], line.split()[1:]) for line in lines]

    splits = {"train": sentences("0 x a", "0 x b", "1 y a", "1 x c", "1 y d"), "valid": sentences("1 x", "0 x", "0 y"),
              "test": sentences("1 y", "0 x", "1 z")}
    write_sentences(tmp_path / "texts", splits, ["0", "1"], {"x": 1, "y": 1}, {})
    assert values(measure("majority", tmp_path / "texts")) == pytest.approx(
        {"validation_accuracy": 100 / 3, "test_accuracy": 200 / 3})
    assert values(measure("first token", tmp_path / "texts")) == pytest.approx(
        {"validation_accuracy": 100 / 3, "test_accuracy": 100.0})


def test_classes_of_pairs_and_of_parsed_corpora(tmp_path):
    from seqstruct.data.nli.folder import _to_json

    lines = {split: "".join(_to_json(SentencePair(("a",), ("b",), label)) + "\n" for label in labels)
             for split, labels in (("train", "yyn"), ("valid", "n"), ("test", "yn"))}
    write(tmp_path / "nli", nli_dot_json='{"labels": ["y", "n"], "lowercase": false}', vocabulary_dot_txt="a\nb\n",
          **{f"{split}_dot_jsonl": content for split, content in lines.items()})
    assert values(measure("majority", tmp_path / "nli")) == {"validation_accuracy": 0.0, "test_accuracy": 50.0}
    classes = {split: [AnnotatedSentence(("w",), label=label) for label in labels]
               for split, labels in (("train", "ppq"), ("valid", "p"), ("test", "ppq"))}
    write_parsing({"classes": Annotated("classes", classes)}, tmp_path / "parsing")
    assert values(measure("majority", tmp_path / "parsing")) == pytest.approx(
        {"validation_accuracy": 100.0, "test_accuracy": 200 / 3})


STORY = "1 A took it.\n2 B left.\n3 A went {0}.\n4 Where?\t{0}\t1 3\n5 B came.\n6 Where is it?\t{0}\t1 3\n"


def test_answers_and_facts_at_random(tmp_path):
    write(tmp_path, train_dot_txt=STORY.format("home") + STORY.format("home") + STORY.format("away"),
          valid_dot_txt=STORY.format("away"), test_dot_txt=STORY.format("home") + STORY.format("up"))
    chance = (1 / len(list(permutations(range(3), 2))) + 1 / len(list(permutations(range(4), 2)))) / 2
    facts = {"fact_accuracy": pytest.approx(100 * chance)}
    assert values(measure("random answer", tmp_path, steps=2)) == {
        "validation_accuracy": 50.0, "test_accuracy": 25.0, **facts}  # of "home" and "away"; "up" is none
    assert values(measure("most frequent answer", tmp_path, steps=2)) == {
        "validation_accuracy": 0.0, "test_accuracy": 50.0, **facts}
    assert values(measure("random answer", tmp_path, steps=3))["fact_accuracy"] == 0.0
    with pytest.raises(ValueError, match="steps: expected 1 or more, got 0"):
        measure("random answer", tmp_path, steps=0)
    # the second question's fact 1 is not among the last three
    assert values(measure("random answer", tmp_path, steps=2, memory=3))["fact_accuracy"] == pytest.approx(100 / 12)


def test_the_source_as_its_own_translation(tmp_path):
    source, target = ["Ein Hund .", "Tom sieht Rom ."], ["A dog .", "Tom sees Rom ."]
    for split in ("valid", "test"):
        for language, lines in (("de", source), ("en", target)):
            write(tmp_path, **{f"raw__{split}_dot_{language}": "\n".join(lines) + "\n"})
    bleu, chrf = score(source, [target])
    assert values(measure("copy", tmp_path, languages=("de", "en"))) == {
        "test_bleu": bleu.value, "test_chrf": chrf.value}
    tokens, lower = score(source, [target], ("tokenized_bleu", "bleu"), lowercase=True, language="en")
    found = measure("copy", tmp_path, languages=("de", "en"), metrics=("tokenized_bleu", "bleu"), lowercase=True,
                    splits={"valid": "validation"})
    assert values(found) == {
        "validation_tokenized_bleu_lowercased": tokens.value, "validation_bleu_lowercased": lower.value}
    with pytest.raises(ValueError, match="languages of the source and the target"):
        measure("copy", tmp_path)


def test_each_score_of_a_copy_has_its_own_unit_and_name(tmp_path, capsys):
    write(tmp_path, raw__gen_dot_de="a b c\n" * 5, raw__gen_dot_en="a x c\n" * 5)
    words = ["baseline", "copy", str(tmp_path), "--languages", "de", "en", "--splits", "gen=other", "--metrics"]
    assert main([*words, "ter", "gleu", "exact_match", "tokenized_bleu", "ter"]) == 0
    assert [line.split("\t")[::2] for line in capsys.readouterr().out.splitlines()] == [
        ["other_ter", "TER"], ["other_gleu", "GLEU"], ["other_exact_match", "%"], ["other_tokenized_bleu", "BLEU"]]


def test_one_form_for_all_formulas(tmp_path):
    write_formulas(Formulas(train=30, valid=5, test=4), tmp_path / "formulas")
    constant, copied = (values(measure(name, tmp_path / "formulas")) for name in ("constant", "copy"))
    first = [(tmp_path / "formulas" / f"{split}.infix").read_text().splitlines() for split in ("train", "test")]
    openings = [line.split()[0] for line in first[0]]
    chosen = max(openings, key=openings.count)
    shares = [100 / (len(line.split()) + 1) for line in first[1] if line.split()[0] == chosen]
    assert 0 < sum(shares) / len(first[1]) <= constant["length_to_failure"] < 25
    assert copied["length_to_failure"] == 0.0  # "$" is no symbol of an infix form
    assert {f"length_to_failure_depth_{depth}" for depth in range(2, 7)} < set(constant) == set(copied)


def test_parents_of_closing_parentheses(tmp_path):
    write_formulas(Formulas(train=3, valid=1, test=4), tmp_path / "formulas")
    even, nearest = (values(measure(name, tmp_path / "formulas")) for name in ("even weights", "nearest opening"))
    assert nearest["test_weight_on_openings"] == 100 > nearest["test_weight_on_own_opening"] > 0
    assert 50 > even["test_weight_on_openings"] > even["test_weight_on_own_opening"] > 0


def test_neighbours_as_heads(tmp_path):
    words = ("a", "b", "c")
    graph = AnnotatedSentence(words, heads=(0, 1, 1), arcs=((0, 1, TOP), (1, 2, "x"), (3, 2, "y")))
    tree = AnnotatedSentence(words, heads=(2, 3, 0))
    splits = {split: [graph] for split in ("train", "valid", "test")}
    trees = Annotated("trees", {split: [tree] for split in splits})
    write_parsing({"trees": trees, "g": Annotated("graphs", splits)}, tmp_path / "parsing")
    before, after = (values(measure(f"{side} word", tmp_path / "parsing")) for side in ("previous", "next"))
    # previous: top 1, 1-2 x, 2-3 x; next: 2-1 y, 3-2 y, top 3
    assert before["test_labeled_f1"] == before["test_unlabeled_f1"] == pytest.approx(100 * 2 / 3)
    assert after["test_labeled_f1"] == after["test_unlabeled_f1"] == pytest.approx(100 / 3)
    assert before["test_graph_sentences_uas"] == pytest.approx(200 / 3) and before["test_trees_uas"] == 0.0
    assert after["test_graph_sentences_uas"] == 0.0 and after["test_trees_uas"] == 100.0


def test_the_command_prints_what_is_measured_and_errors_are_one_sentence(text, tmp_path, capsys, refused):
    assert main(["baseline", "bigram", str(text), "--sentences", "--discount", "0.75"]) == 0
    wanted = values(measure("bigram", text, sentences=True, discount=0.75))
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert {metric: pytest.approx(float(value), rel=1e-3) for metric, value, _ in lines} == wanted
    for words, sentence in (
        (["nothing", str(text)], "expected a baseline of bigram"),
        (["majority", str(text)], "meta.json cannot be read"),
        (["bigram", str(text), "--steps", "2"], "bigram has no option 'steps'"),
        *((["constant", str(text), "--splits", split], f"expected SPLIT=NAME, such as valid=validation, got {split!r}")
          for split in ("x", "valid=", "=validation")),
        (["5-gram", str(tmp_path / "none")], "no such file: expected a folder for language"),
        (["trigram", str(write(tmp_path, text__test_dot_txt=""))], "text/test.txt: the file is empty"),
    ):
        assert sentence in refused("baseline", *words)
