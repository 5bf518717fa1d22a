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
    python.write_text('#!/bin/bash\n[[ "$*" != *encode* ]] && echo "$* ${SEQSTRUCT_COMPILED-} ${SEQSTRUCT_LINEAR-}"\n')
    python.chmod(0o755)

    def run(*names: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "TIMES": "1", "THREADS": "3",
                       "PEERS": "a b"}
        command = [tmp_path / "recipes" / "speed.sh", *names]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    failed = run("encode", "rational", "attention-pytorch")
    assert failed.returncode == 1 and "failed: encode" in failed.stderr
    assert file.read_text() == (
        "# Speed\n\n## parsing\n\nkept\n\n## rational\n\n"
        "    seqstruct bench rational --lengths 35 --threads 3\n\n"
        "```\n-m seqstruct bench rational --lengths 35 --threads 3 --peer a b  \n```\n\n## attention-pytorch\n\n"
        "    SEQSTRUCT_COMPILED=0 SEQSTRUCT_LINEAR=torch seqstruct bench attention --repeats 3 --threads 3\n\n"
        "```\n-m seqstruct bench attention --repeats 3 --threads 3 --peer a b 0 torch\n```\n"
    )
    assert "no benchmark speed" in run("speed").stderr


MADE = """# Speed

## inference

```
case                          forward ms  forward+backward ms  times ours  kept MB
chain, batch 2, n 5   seqstruct     1.00                 2.00                  0.5
chain, batch 2, n 5   torch-struct  1.00                 9.00         4.5      0.5
chain, batch 2, n 7   seqstruct     1.00                 4.00                  0.5
chain, batch 2, n 7   torch-struct  1.00                 2.00         0.5      0.5
```

## inference-pytorch

```
chain, batch 2, n 5   seqstruct     1.00                 3.00                  0.5
chain, batch 2, n 5   torch-struct  1.00                 9.00         3.0      0.5
```

## distributions

```
segments, n 5  log-partition     seqstruct  1.00  8.00
segments, n 5  log-partition  torch-struct  1.00  2.00  0.2
```

## attention

```
softmax, fused                   512   5.0  10.0  1.00  1.00  7
gated_delta                      512   5.0   4.0  1.00  0.40  7
Hugging Face, gated_delta        512   5.0  12.0  1.00  1.20  7
gated_delta                     2048   5.0   8.0  1.00  0.40  7
Hugging Face, gated_delta       2048   5.0   4.0  1.00  1.20  7
```
"""


def test_ratios_are_those_of_what_stands_beside_each_other() -> None:
    """By hand: least and greatest over sizes, by length where the order turns, what was not measured empty."""
    assert comparisons.summary(MADE).splitlines()[2:] == [
        "| marginals of chains, both passes | torch-struct | 0.50 to 4.5 | 3.0 |",
        "| log-partition of segments, both passes | torch-struct | 0.25 |  |",
        "| gated_delta, both passes | fused softmax | 2.5 at 512 |  |",
        "| gated_delta, both passes | Hugging Face | 3.0 at 512, 0.50 at 2,048 |  |",
    ]
    assert comparisons.summary(MADE, front=True).splitlines()[2:] == [
        "| marginals of chains, both passes | torch-struct | 0.50 to 4.5 |",
        "| log-partition of segments, both passes | torch-struct | 0.25 |",
        "| gated_delta, both passes | Hugging Face | 3.0 at 512, 0.50 at 2,048 |",
    ], "those of the front page, and the slowest of all"


def test_rows_of_the_front_page_are_rows() -> None:
    assert comparisons.FRONT <= {row[:2] for row in comparisons.COMPARISONS}


def test_the_table_is_printed_or_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert comparisons.main([]) == 0
    assert capsys.readouterr().out.startswith("| ours | beside | times as fast | by PyTorch alone |")
    (tmp_path / "SPEED.md").write_text("# Speed\n")
    assert comparisons.main([str(tmp_path / "SPEED.md")]) == 1
    assert "expected rows" in capsys.readouterr().err
