"""recipes/speed.sh writes what the benchmarks print, section by section; the table of comparisons is read from it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from seqstruct.benchmarks import comparisons

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


def test_a_section_is_replaced_and_the_others_keep_what_they_have(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    shutil.copy(RECIPES / "speed.sh", tmp_path / "recipes")
    file = tmp_path / "recipes" / "SPEED.md"
    file.write_text("# Speed\n\n## rational\n\nold\n\n## parsing\n\nkept\n")
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/bash\n[[ "$*" != *encode* ]] && echo "$* $SEQSTRUCT_COMPILED"\n')
    python.chmod(0o755)

    def run(*names: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "TIMES": "1", "THREADS": "3"}
        command = [tmp_path / "recipes" / "speed.sh", *names]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    failed = run("encode", "rational", "attention-compiled")
    assert failed.returncode == 1 and "failed: encode" in failed.stderr
    assert file.read_text() == (
        "# Speed\n\n## parsing\n\nkept\n\n## rational\n\n"
        "    SEQSTRUCT_COMPILED=0 seqstruct bench rational --threads 3\n\n"
        "```\n-m seqstruct bench rational --threads 3 0\n```\n\n## attention-compiled\n\n"
        "    SEQSTRUCT_COMPILED=1 seqstruct bench attention --threads 3\n\n"
        "```\n-m seqstruct bench attention --threads 3 1\n```\n"
    )
    assert "no benchmark speed" in run("speed").stderr


def test_the_table_is_printed_or_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert comparisons.main([str(RECIPES / "SPEED.md")]) == 0
    assert capsys.readouterr().out.startswith("| ours | beside | times as fast |")
    (tmp_path / "SPEED.md").write_text("# Speed\n")
    assert comparisons.main([str(tmp_path / "SPEED.md")]) == 1
    assert "expected rows" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        comparisons.main([])
