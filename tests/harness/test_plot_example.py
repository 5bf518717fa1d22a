"""The sentence whose attention is drawn."""

from __future__ import annotations

from seqstruct.harness.plot_example import first_known, main


def test_the_first_pair_that_is_known_and_short(tmp_path, capsys):
    for folder in ("bin", "text"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "dict.de.txt").write_text("ein 3\nHund 1\n. 2\n")
    (tmp_path / "bin" / "dict.en.txt").write_text("a 3\ndog 1\n. 2\n")
    (tmp_path / "text" / "test.de").write_text("ein Hund . .\nein Vogel .\nein Hund\nein .\n")
    (tmp_path / "text" / "test.en").write_text("a dog . .\na bird .\na cat\na .\n")
    assert first_known(tmp_path, ("de", "en"), "test", 4) == ("ein Hund . .", "a dog . .")
    assert first_known(tmp_path, ("de", "en"), "test", 3) == ("ein .", "a .")
    out = tmp_path / "drawn.png"
    words = ["none.pt", "--data", str(tmp_path), "--languages", "de", "en", "--most", "1", "--out", str(out)]
    assert main(words) == 0 and not out.exists()
    assert "no sentence of test has known tokens alone and at most 1" in capsys.readouterr().out
