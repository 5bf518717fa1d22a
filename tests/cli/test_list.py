"""`seqstruct list`: what it says comes from the mechanisms' own files."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from seqstruct.attention import ATTENTIONS, option
from seqstruct.cli import list as listing
from seqstruct.cli import main
from seqstruct.data.registry import ENTRIES


@dataclass(frozen=True)
class Options:
    """Options."""

    size: int = option(5, least=1)  # size of the memory
    name: str = "a # b"
    wide: tuple[int, ...] = (
        1,
        2,
    )  # widths


def test_options_are_documented_by_the_comment_on_their_line():
    assert listing.options(Options) == (
        listing.Option("size", "5", "size of the memory", "1 or more"),
        listing.Option("name", "'a # b'", "", ""),
        listing.Option("wide", "(1, 2)", "widths", ""),
    )


@pytest.mark.parametrize(
    "docstring, expected",
    [
        ("Stack attention (A & B 2024, sec. 3): a stack.\n\nMore.", ("Stack attention: a stack", "A & B 2024, sec. 3")),
        ("Attention of one head\n(A 1999).", ("Attention of one head", "A 1999")),
        ("A (small) thing: with words.", ("A (small) thing: with words", "")),
        ("", ("", "")),
    ],
)
def test_summary_and_paper_are_the_first_sentence(docstring, expected):
    assert listing.source(docstring) == expected


@pytest.mark.parametrize("name", sorted(ATTENTIONS))
def test_every_mechanism_says_what_it_is_and_documents_its_options(name):
    mechanism = next(m for m in listing.mechanisms() if m.name == name)
    assert mechanism.summary
    assert mechanism.paper, f"{name}: the first sentence of the module's docstring cites no paper"
    assert mechanism.sites
    for found in mechanism.options:
        assert found.help, f"{name}: no comment stands beside the option {found.name}"


def test_text_and_markdown_name_every_mechanism(capsys):
    assert main(["list", "--format", "markdown"]) == 0
    table = capsys.readouterr().out
    assert [line.split("`")[1] for line in table.splitlines()[2:]] == sorted(ATTENTIONS)
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for name in ATTENTIONS:
        assert f"\n  {name}: " in text
    assert "\n      score='general'  of a query and a key; one of dot, general, concat\n" in text


def test_a_reader_that_has_seen_enough_is_no_error():
    listing = subprocess.Popen(
        [sys.executable, "-m", "seqstruct", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    assert listing.stdout.read(9) == b"attention"
    listing.stdout.close()
    assert listing.stderr.read() == b""
    assert listing.wait() == 141
    listing.stderr.close()


def test_the_table_of_corpora_has_every_name(capsys):
    assert main(["list", "--corpora"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == [entry.name for entry in ENTRIES]
    assert all(row.count(" | ") == 4 for row in rows)


def test_registrations_are_ours_alone():
    found = listing.registrations()
    assert {"structured_transformer", "structured_transformer_lm"} <= found["architectures"].keys()
    assert "transformer" not in found["architectures"]
    assert "5 layers of size 32" in found["architectures"]["structured_transformer_lm_cfl"]
    assert "cfl_language_modeling" in found["tasks"]
    assert "cfl_cross_entropy" in found["criterions"]


def test_mechanisms_are_listed_without_fairseq(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "seqstruct.models", None)
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert "\n  softmax: " in printed
    assert "`seqstruct doctor` names the fix" in printed
