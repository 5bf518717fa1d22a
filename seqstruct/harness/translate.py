"""What recipes of translation share: decoding a set, its scores and speed, and the validation perplexity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from seqstruct.data.aligned import read_lines
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.process import fairseq
from seqstruct.harness.run import PLUGIN, Run
from seqstruct.scoring.hypotheses import read_generate, to_text
from seqstruct.scoring.translation import Score, score


def generate(
    run: Run,
    binarised: Path,
    checkpoint: Path,
    languages: tuple[str, str],
    options: Sequence[str],
    folder: str = "",
    overrides: Mapping[str, object] | None = None,
) -> Path:
    """Translate by fairseq-generate; the file of its output, generate-SUBSET.txt, comes back.

    languages: source and target.  options: of fairseq-generate (subset, beam, lengths).  folder: within the run's, for
    the output.  overrides: options of the model that replace those of the checkpoint.
    """
    subset = options[options.index("--gen-subset") + 1]
    out = run.folder / folder
    run.progress.say(f"{run.cell}: decoding {folder}".rstrip())
    command = [*fairseq("generate"), binarised, "--user-dir", PLUGIN, "--path", checkpoint, *options]
    command += ["--source-lang", languages[0], "--target-lang", languages[1], "--max-tokens", "4000"]
    command += ["--num-workers", "0", "--results-path", out]
    command += ["--model-overrides", repr(dict(overrides))] if overrides else []
    run.command(command + (["--cpu"] if run.cell.scale != "paper" else []), str(Path(folder) / "decode.log"))
    return out / f"generate-{subset}.txt"


def corpus_scores(
    run: Run,
    data: Path,
    checkpoint: Path,
    languages: tuple[str, str],
    options: Sequence[str],
    folder: str = "",
    overrides: Mapping[str, object] | None = None,
) -> list[Score]:
    """BLEU and chrF of BPE translations, detokenised, against data/raw/SUBSET.TARGET; the arguments are `generate`'s.

    data: a folder of data-prep, with bin/ and raw/.  Raises ValueError if a sentence has no translation.
    """
    decoded = generate(run, data / "bin", checkpoint, languages, options, folder, overrides)
    subset, target = options[options.index("--gen-subset") + 1], languages[1]
    references = list(read_lines(data / "raw" / f"{subset}.{target}"))
    hypotheses = to_text(read_generate(read_lines(decoded), str(decoded), len(references)), "bpe", target)
    scores = score(hypotheses, [references])
    run.progress.say(f"{run.cell}: {scores[0].signature}")
    return scores


def tokens_per_second(decoded: Path) -> float:
    """What fairseq-generate says of its own speed, without loading and writing, in the log beside its output.

    Raises ValueError if it says nothing.
    """
    log = decoded.parent / "decode.log"
    found = re.findall(r"Translated [\d,]+ sentences .*?([\d.]+) tokens/s", log.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{log}: expected the line of fairseq-generate that gives its speed")
    return float(found[-1])


def validation_perplexity(run: Run) -> float:
    """Of a token, at the checkpoint that is evaluated: the one of least validation loss."""
    log = run.folder / "train.log"
    entries = [entry.statistics for entry in parse_lines(read_lines(log)) if entry.tag == "valid"]
    if not entries:
        raise ValueError(f"{log}: expected validation statistics, found none")
    return min(entries, key=lambda statistics: statistics["valid_loss"])["valid_ppl"]
