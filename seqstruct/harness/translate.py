"""What recipes of translation share: decoding the test set, and the validation perplexity of what was decoded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seqstruct.data.parallel import read_lines
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.process import fairseq
from seqstruct.harness.run import PLUGIN, Run


def generate(run: Run, binarised: Path, checkpoint: Path, languages: tuple[str, str], options: Sequence[str]) -> Path:
    """Translate by fairseq-generate; the file of its output, generate-test.txt in the run's folder, comes back.

    languages: source and target.  options: of fairseq-generate (subset, beam, lengths).
    """
    run.progress.say(f"{run.cell}: decoding")
    command = [*fairseq("generate"), binarised, "--user-dir", PLUGIN, "--path", checkpoint, *options]
    command += ["--source-lang", languages[0], "--target-lang", languages[1], "--max-tokens", "4000"]
    command += ["--num-workers", "0", "--results-path", run.folder]
    run.command(command + (["--cpu"] if run.cell.scale != "paper" else []), "decode.log")
    return run.folder / "generate-test.txt"


def validation_perplexity(run: Run) -> float:
    """Of a token, at the checkpoint that is evaluated: the one of least validation loss."""
    log = run.folder / "train.log"
    entries = [entry.statistics for entry in parse_lines(read_lines(log)) if entry.tag == "valid"]
    if not entries:
        raise ValueError(f"{log}: expected validation statistics, found none")
    return min(entries, key=lambda statistics: statistics["valid_loss"])["valid_ppl"]
