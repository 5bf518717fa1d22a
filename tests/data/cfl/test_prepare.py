"""Languages of one's own from the command line to a folder that is read back."""

import json

import numpy as np
import pytest

from seqstruct.data.cfl.chart import log_probabilities
from seqstruct.data.cfl.folder import language_of, read_meta, read_split
from tests.data.scripts import prepare

RULES = '# brackets\u2028and a tail\nS -> "(" S ")" S [0.4] | T [0.1] | [0.5]\nT -> "x" T [0.3] | "x"\n'
AUTOMATON = "# of\x85two states\nstart 0\nfinal 1 0.5\n0 1 a 0.3\n1 0 b\n1 1 <eps> 0.2\n1 1 c\n"
SMALL = ("--lengths", "4:11", "--test-lengths", "4:13", "--train", 30, "--valid", 9, "--test-per-length", 2)


@pytest.fixture()
def written(tmp_path):
    """How to ask for each of the three."""
    (tmp_path / "mine.cfg").write_text(RULES, encoding="utf-8")
    (tmp_path / "mine.wfsa").write_text(AUTOMATON, encoding="utf-8")
    return {"rules": ("--grammar", tmp_path / "mine.cfg"), "wfsa": ("--wfsa", tmp_path / "mine.wfsa"),
            "regex": ("--regex", "(a|b)*c{2,}")}


@pytest.mark.parametrize("form", ["rules", "regex", "wfsa"])
def test_a_folder_of_ones_own_language(form, written, tmp_path, capsys):
    out = tmp_path / "out"
    assert prepare("cfl", *written[form], *SMALL, "--out", out) == 0, capsys.readouterr().err
    meta = read_meta(out)
    language = language_of(out, meta)
    assert meta["grammar"] == language.form == form
    assert meta["language"] == language.name == {"rules": "mine.cfg", "wfsa": "mine.wfsa"}.get(form, written[form][1])
    lengths = language.valid_lengths(4, 11)
    assert meta["valid_length_counts"]["train"] == len(lengths)
    strings, values = read_split(out, "test", meta)
    assert [len(s) for s in strings] == [n for n in language.valid_lengths(4, 13) for _ in range(2)]
    np.testing.assert_allclose(values, log_probabilities(language, strings), rtol=1e-15)
    assert all(len(s) in lengths for s in read_split(out, "train", meta).strings)
    assert (out / "dict.txt").read_text().split()[::2] == list(language.terminals)
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == f"{out}: ready"
    assert (len(printed) == 3) == (form != "regex")
    (out / "language.txt").write_text("x")
    with pytest.raises(ValueError, match="language.txt: SHA-256 .* truncated or altered"):
        read_meta(out)


def test_one_of_the_five_has_the_files_it_had(tmp_path):
    assert prepare("cfl", "dyck", *SMALL, "--out", tmp_path / "out") == 0
    meta = json.loads((tmp_path / "out/meta.json").read_text())
    assert (meta["language"], meta["grammar"]) == ("dyck", "published")
    assert not (tmp_path / "out/language.txt").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "expected a language, by its name or by --grammar FILE, --regex PATTERN or --wfsa FILE"),
        (["dyck", "--regex", "ab"], "expected one language, got dyck and --regex"),
        (["dyck", "--grammar", "{out}.cfg"], "a grammar of dyck is taken published or as-written, not"),
        (["--grammar", "{out}.cfg"], "{out}.cfg: No such file or directory"),
        (["--regex", "a{4}|b{2}", "--lengths", "4:9", "--test-lengths", "5:9"],
         "--test-lengths: a{4}|b{2} has no string of length 5 to 9"),
        (["--regex", "ab{0,3}", "--lengths", "1:6"], "--test-lengths: ab{0,3} has no string of length 40 to 100"),
        (["--regex", "ab{0,3}", "--test-lengths", "1:6"], "--lengths: ab{0,3} has no string of length 40 to 80"),
        (["--regex", "a|(b"], "'a|(b': character 5: expected a )"),
        (["--regex", "ab", "--wfsa", "x"], "--wfsa: not allowed with argument --regex"),
    ],
)
def test_wrong_options(options, message, tmp_path, refused):
    out = tmp_path / "out"
    told = refused("prepare", "cfl", *(o.replace("{out}", str(out)) for o in options), "--out", out)
    assert message.replace("{out}", str(out)) in told
    assert not out.exists()


@pytest.mark.parametrize(("option", "content"), [("--grammar", b'S -> "\xff"\n'), ("--wfsa", b"start \xff\n")])
def test_files_that_are_not_utf_8(option, content, tmp_path, refused):
    (tmp_path / "bad").write_bytes(content)
    told = refused("prepare", "cfl", option, tmp_path / "bad", "--out", tmp_path / "out")
    assert "bad: not UTF-8 after line 0" in told
