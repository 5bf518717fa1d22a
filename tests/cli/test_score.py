import io
import json

import pytest
from sacrebleu.metrics import BLEU

from seqstruct.cli import main

REFERENCE = ["Two dogs play in the snow.", "A man isn't walking home.", "The small bird sits in a tree."]
SUBWORDS = ["Two dog@@ s play in the snow .", "A man is@@ n 't walking .", "The bird sits in a tree ."]
TEXT = ["Two dogs play in the snow.", "A man isn't walking.", "The bird sits in a tree."]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with references, hypotheses and decoder output."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ref.en").write_text("\n".join(REFERENCE) + "\n")
    (tmp_path / "hyp.bpe").write_text("\n".join(SUBWORDS) + "\n")
    (tmp_path / "other.bpe").write_text("\n".join(SUBWORDS[:1] + ["A m@@ an .", "A tree ."]) + "\n")
    output = "".join(f"S-{i}\tx\nH-{i}\t-0.5\t{SUBWORDS[i]}\nD-{i}\t-0.5\tx\n" for i in (2, 0, 1))
    (tmp_path / "generate.txt").write_text(output)
    return tmp_path


UNDO = ["--references", "ref.en", "--subwords", "bpe", "--detokenize", "en"]


def scored(capsys, *arguments):
    assert main(["score", *arguments, *UNDO, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_way_in_gives_sacrebleus_number(folder, capsys, monkeypatch):
    expected = BLEU().corpus_score(TEXT, [REFERENCE]).score
    plain = scored(capsys, "--hypotheses", "hyp.bpe")
    assert plain["sentences"] == 3
    assert plain["scores"][0]["value"] == expected
    assert scored(capsys, "--from-generate", "generate.txt") == plain
    monkeypatch.setattr("sys.stdin", io.StringIO((folder / "generate.txt").read_text()))
    assert scored(capsys, "--from-generate", "-") == plain
    assert [s["metric"] for s in scored(capsys, "--hypotheses", "hyp.bpe", "--metrics", "chrf")["scores"]] == ["chrf"]


def test_text_holds_scores_signature_and_comparison(folder, capsys):
    assert main(["score", "--hypotheses", "hyp.bpe", "--against", "other.bpe", "--resamples", "20", *UNDO]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(f"bleu {BLEU().corpus_score(TEXT, [REFERENCE]).score:.2f}")
    assert "tok:13a" in shown[1]
    assert "difference +" in shown[4]
    assert "bs:20|seed:12345" in shown[5]
    assert len(shown) == 8
    compared = scored(capsys, "--hypotheses", "hyp.bpe", "--against", "other.bpe", "--resamples", "20")["against"]
    assert [c["metric"] for c in compared] == ["bleu", "chrf"]
    words = ["--hypotheses", "hyp.bpe", "--against", "other.bpe", "--resamples", "20", *UNDO]
    assert main(["score", *words, "--record", "found.json", "test_{}"]) == 0
    found = {m["metric"]: (m["value"], m["unit"]) for m in json.loads((folder / "found.json").read_text())}
    assert list(found) == ["test_bleu", "test_chrf", "test_bleu_difference", "test_bleu_p", "test_chrf_difference",
                           "test_chrf_p"]
    bleu = compared[0]
    assert found["test_bleu_difference"] == (bleu["value"] - bleu["baseline"], "BLEU")
    assert found["test_bleu_p"] == (bleu["p_value"], "p")


@pytest.mark.parametrize(("name", "content", "arguments", "message"), [
    ("hyp.bpe", "one\n", ["--hypotheses", "hyp.bpe"], "hyp.bpe: 1 lines, but the references have 3"),
    ("other.bpe", "one\n", ["--hypotheses", "hyp.bpe", "--against", "other.bpe"],
     "other.bpe: 1 lines, but the references have 3"),
    ("generate.txt", "H-0\t-1\ta\n", ["--from-generate", "generate.txt"],
     "generate.txt: 2 of 3 sentences have no hypothesis (ids 1, 2)"),
    ("ref.en", "", ["--hypotheses", "empty"], "references: expected one line or more, got none"),
    ("empty", "", ["--hypotheses", "absent"], "absent"),
    ("corpus.json", "", ["--hypotheses", "hyp.bpe", "--data", "."], "corpus.json: truncated or altered: "),
    ("corpus.json", "[]", ["--hypotheses", "hyp.bpe", "--data", "."], "corpus.json: expected an object in JSON, got"),
    *(("corpus.json", f'{{"options": {options}}}', ["--hypotheses", "hyp.bpe", "--data", "."],
       "corpus.json: expected the options of a folder of translations")
      for options in ("3", "{}", '{"languages": 5, "subwords": "bpe"}', '{"languages": ["de"], "subwords": "bpe"}',
                      '{"languages": ["de", "en"]}', '{"languages": ["de", "en"], "subwords": ["bpe"]}',
                      '{"languages": ["de", "en"], "subwords": "syllables"}')),
])
def test_bad_input_is_one_sentence(folder, refused, name, content, arguments, message):
    (folder / "empty").write_text("")
    (folder / name).write_text(content)
    assert message in refused("score", *arguments, *([] if "--data" in arguments else UNDO))


def test_references_that_generate_did_not_have(folder, capsys, refused):
    targets = "".join(f"T-{number}\t{line}\n" for number, line in enumerate(REFERENCE))
    (folder / "generate.txt").write_text(targets + (folder / "generate.txt").read_text())
    scored(capsys, "--from-generate", "generate.txt")
    (folder / "ref.en").write_text("\n".join([*REFERENCE[1:], REFERENCE[0]]) + "\n")
    told = refused("score", "--from-generate", "generate.txt", *UNDO)
    assert "generate.txt: made for other references: its target 0 is 'Two dogs" in told


def test_references_of_unequal_length(folder, refused):
    (folder / "second").write_text("one\n")
    told = refused("score", "--hypotheses", "hyp.bpe", "--references", "ref.en", "second")
    assert "second: 1 lines, but ref.en has 3" in told


def test_several_systems_stand_side_by_side(folder, capsys):
    metrics = ["--metrics", "bleu", "ter", "tokenized_bleu", "gleu"]
    alone = [scored(capsys, "--hypotheses", name, *metrics)["scores"] for name in ("hyp.bpe", "other.bpe")]
    both = scored(capsys, "--hypotheses", "hyp.bpe", "other.bpe", *metrics, "--against", "other.bpe",
                  "--resamples", "20")["systems"]
    assert [s["name"] for s in both] == ["hyp.bpe", "other.bpe"]
    assert [s["scores"] for s in both] == alone
    assert [c["p_value"] for c in both[1]["against"]] == [1] * 4
    assert "tok:moses-en" in alone[0][2]["signature"]
    assert main(["score", "--hypotheses", "hyp.bpe", "other.bpe", *metrics, *UNDO]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["system", "bleu", "ter", "tokenized_bleu", "gleu"]
    assert shown[1].split() == ["hyp.bpe", *(f"{s['value']:.2f}" for s in alone[0])]
    assert len({line.rfind(".") for line in shown[1:3]}) == 1
    assert len(shown) == 7


def test_scores_by_length_of_source_or_reference(folder, capsys):
    (folder / "src.de").write_text("a\na b c\na b c d e\n")
    groups = scored(capsys, "--hypotheses", "hyp.bpe", "--by-length", "3", "4", "--sources", "src.de")["by_length"]
    assert [(g["least"], g["most"], g["sentences"]) for g in groups] == [(0, 3, 2), (4, 4, 0), (5, None, 1)]
    assert groups[2]["scores"][0]["value"] == BLEU().corpus_score(TEXT[2:], [REFERENCE[2:]]).score
    groups = scored(capsys, "--hypotheses", "hyp.bpe", "--by-length", "5")["by_length"]
    assert [g["sentences"] for g in groups] == [1, 2]
    assert main(["score", "--hypotheses", "hyp.bpe", "--by-length", "3", "4", "--sources", "src.de", *UNDO]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[5] == "4 to 4 words, 0 sentences: no scores"
    assert shown[6].startswith("over 4 words, 1 sentences: bleu ")


def test_scores_by_name_and_their_means(folder, capsys):
    (folder / "names").write_text("a/x\nb\na/y\n")
    arguments = ("--hypotheses", "hyp.bpe", "--groups", "names", "--metrics", "exact_match")
    groups = {g["name"]: g for g in scored(capsys, *arguments)["by_group"]}
    assert list(groups) == ["a/x", "b", "a/y", "a"] and (groups["a"]["groups"], groups["a"]["sentences"]) == (2, 2)
    right = [100.0 * (text == reference) for text, reference in zip(TEXT, REFERENCE, strict=True)]
    assert [g["values"]["exact_match"] for g in groups.values()] == [*right, (right[0] + right[2]) / 2]
    assert main(["score", *arguments, *UNDO]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"a, mean of 2: exact_match {(right[0] + right[2]) / 2:.2f}"


def test_alignment_error_rate(folder, capsys):
    (folder / "gold").write_text("1-1 2p2\n1-2\n")
    (folder / "found").write_text("0-0 1-1\n1-1\n")
    arguments = ["score", "--alignments", "found", "--gold-alignments", "gold", "--gold-from-one"]
    assert main([*arguments, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["alignments"][0]
    assert found["error_rate"] == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("found: alignment error rate 0.4000, precision 0.6667, recall 0.5000")


@pytest.mark.parametrize(("arguments", "message"), [
    (["--hypotheses", "hyp.bpe"], "expected --references"),
    (["--hypotheses", "hyp.bpe", "--references", "ref.en", "--subset", "valid"], "--subset: expected --data with it"),
    (["--alignments", "hyp.bpe"], "expected --gold-alignments"),
    (["--alignments", "hyp.bpe", "--gold-alignments", "one"], "hyp.bpe: line 1: expected links"),
    (["--alignments", "one", "--gold-alignments", "two"], "one: 1 lines, but two has 2"),
    (["--hypotheses", "hyp.bpe", "--references", "ref.en", "--by-length", "5", "--sources", "one"], "one: 1 lines"),
    (["--hypotheses", "hyp.bpe", "--references", "ref.en", "--groups", "one"], "groups: expected 3"),
    (["--from-generate", "-", "-", "--references", "ref.en"], "standard input can be one system only"),
    (["--hypotheses", "hyp.bpe", "--references", "ref.en", "--against", "hyp.bpe", "--against-data", "."],
     "--against-data: expected --data with it"),
])
def test_what_does_not_go_together_is_one_sentence(folder, refused, arguments, message):
    (folder / "one").write_text("0-0\n")
    (folder / "two").write_text("0-0\n\n")
    assert message in refused("score", *arguments)


@pytest.mark.parametrize(("way", "option", "told"), [
    *(("--alignments", option, "is of translations, expected none with --alignments") for option in (
        "--references ref.en", "--data .", "--subwords bpe", "--truecased", "--detokenize en", "--metrics ter",
        "--language en", "--lowercase", "--tokenize none", "--against one", "--resamples 9", "--by-length 5",
        "--sources one", "--groups one")),
    ("--hypotheses", "--gold-alignments one", "expected --alignments with it"),
    ("--hypotheses", "--gold-from-one", "expected --alignments with it"),
    *(("--from-generate", f"{option} --data .", "expected none with --data, which decides it") for option in (
        "--references ref.en", "--subwords bpe", "--truecased", "--detokenize en")),
    ("--hypotheses", "--language en --data . --metrics tokenized_bleu", "expected none with --data, which decides it"),
    ("--hypotheses", "--against-data . --data .", "expected --against with it"),
    ("--hypotheses", "--against-data . --data . --against one", "expected --from-generate with it"),
    ("--hypotheses", "--resamples 9", "expected --against with it"),
    ("--hypotheses", "--sources ref.en", "expected --by-length with it"),
    ("--hypotheses", "--language en", "expected --metrics tokenized_bleu with it"),
    ("--hypotheses", "--tokenize none --metrics ter", "expected bleu or gleu in --metrics with it"),
])
def test_options_that_do_nothing_are_refused(folder, refused, way, option, told):
    option = option.split()
    assert f"seqstruct score: {option[0]}: {told}" in refused("score", way, "hyp.bpe", *option)


def test_a_language_that_does_not_exist_is_refused(folder, capsys):
    for option in ("--detokenize", "--language"):
        with pytest.raises(SystemExit):
            main(["score", "--hypotheses", "hyp.bpe", "--references", "ref.en", option, "zz"])
        assert f"{option}: expected the two letters of a language, such as de, got 'zz'" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "lines"), [("bpe", SUBWORDS), (["words", "bpe"], SUBWORDS), ("characters", None)])
def test_a_prepared_folder_says_how_it_is_scored_and_the_scores_are_recorded(folder, capsys, kind, lines):
    """The same as with the options spelled out, under the names asked for."""
    (folder / "corpus.json").write_text(json.dumps({"options": {"languages": ["de", "en"], "subwords": kind}}))
    (folder / "raw").mkdir()
    (folder / "raw" / "valid.en").write_text((folder / "ref.en").read_text())
    lines = lines or [" ".join(text.replace(" ", "\u2581")) for text in TEXT]
    (folder / "out.txt").write_text("".join(f"H-{i}\t0\t{line}\n" for i, line in enumerate(lines)))
    command = ["score", "--from-generate", "out.txt", "--data", ".", "--subset", "valid"]
    assert main([*command, "--record", "found.json", "validation_{}", "5.7:validation_{}"]) == 0
    found = [(m["table"], m["metric"], m["unit"]) for m in json.loads((folder / "found.json").read_text())]
    assert found == [("", "validation_bleu", "BLEU"), ("", "validation_chrf", "chrF2"),
                     ("5.7", "validation_bleu", "BLEU"), ("5.7", "validation_chrf", "chrF2")]
    value = json.loads((folder / "found.json").read_text())[0]["value"]
    assert value == BLEU().corpus_score(TEXT, [REFERENCE]).score
    plain = json.loads((folder / "found.json").read_text())
    (folder / "corpus.json").write_text(json.dumps(
        {"options": {"languages": ["de", "en"], "subwords": kind, "truecase": kind != "characters"}}))
    (folder / "out.txt").write_text((folder / "out.txt").read_text().replace("Two", "two").replace("The", "the"))
    assert main([*command, "--record", "found.json", "validation_{}", "5.7:validation_{}"]) == 0
    assert json.loads((folder / "found.json").read_text()) == plain
    capsys.readouterr()
    assert main([*command, "--references", "ref.en"]) == 1
    assert "--references: expected none with --data, which decides it" in capsys.readouterr().err
    assert main(["score", "--hypotheses", "hyp.bpe", "ref.en", "--references", "ref.en", "--record", "x.json"]) == 1
    assert "--record: expected the translations of one system" in capsys.readouterr().err
    several = ["score", "--hypotheses", "ref.en", "--references", "ref.en", "--record", "x.json", "{}", "test_bleu"]
    assert main(several) == 1 and not (folder / "x.json").exists()
    assert "--record: expected a {} for each of 2 metrics in the name, got 'test_bleu'" in capsys.readouterr().err
    assert main([*several, "--metrics", "bleu"]) == 0


def test_a_system_of_words_is_tested_against_one_of_subwords(folder, capsys):
    """Each becomes text as its own folder says."""
    for name, kind in (("a", "words"), ("b", "bpe")):
        (folder / name / "raw").mkdir(parents=True)
        (folder / name / "raw" / "test.en").write_text("\n".join(REFERENCE) + "\n")
        options = {"languages": ["de", "en"], "subwords": kind}
        (folder / name / "corpus.json").write_text(json.dumps({"options": options}))
    words = [line.replace("@@ ", "") for line in SUBWORDS]
    (folder / "words.txt").write_text("".join(f"H-{i}\t-0.5\t{line}\n" for i, line in enumerate(words)))
    command = ["score", "--from-generate", "words.txt", "--data", "a", "--against", "generate.txt", "--resamples", "20",
               "--format", "json"]
    assert main([*command, "--against-data", "b"]) == 0
    (same, *_) = json.loads(capsys.readouterr().out)["against"]
    assert same["value"] == same["baseline"] == BLEU().corpus_score(TEXT, [REFERENCE]).score
    assert main(command) == 0
    (other, *_) = json.loads(capsys.readouterr().out)["against"]
    assert other["value"] == same["value"] > other["baseline"], "subwords are left where they are taken for words"
