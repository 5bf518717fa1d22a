"""What the recipes of the lectures share: a system is a corpus, a training and a way to decode.

BLEU and chrF are sacreBLEU's on the raw references.  Training speed is the median of what fairseq-train logs, in target
tokens per second of wall clock; decoding speed is what fairseq-generate says at its end, in sentences per second: one
thread at scales smoke and small, next to whatever else the machine did.
"""

from __future__ import annotations

import re
import statistics
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.data.aligned import read_lines
from seqstruct.data.subwords import KINDS
from seqstruct.harness.baselines import measure
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.recipe import Cell, Measurement, Recipe
from seqstruct.harness.run import Run, read_json, write_json
from seqstruct.harness.translate import generate, validation_perplexity
from seqstruct.scoring.hypotheses import read_generate, to_text
from seqstruct.scoring.translation import score

ROOT = Path(__file__).resolve().parents[2]
MULTI30K = load_recipe(ROOT / "recipes" / "multi30k" / "multi30k.py")
compact, write_made_up = (getattr(sys.modules[type(MULTI30K).__module__], n) for n in ("compact", "write_made_up"))
LENGTHS = ("--max-len-a", "1.5", "--max-len-b", "10")
DECODE = ("--beam", "5", "--lenpen", "1", *LENGTHS)
# how `seqstruct score` undoes them; all others as SentencePiece
UNDO = {"words": "none", "bpe": "bpe", "mixed": "mixed"}


@dataclass(frozen=True)
class Corpus:
    """Parallel text in subwords.

    script: of data-prep/.  Multi30k is made by it; of the others --from names the folder that it made.
    subwords, vocabulary: as the script takes them, one or by language: "8000,1000".
    """

    script: str = "multi30k.sh"
    languages: tuple[str, str] = ("en", "de")
    subwords: str = "bpe"
    vocabulary: str = "5000"

    @property
    def name(self) -> str:
        """Of the folder of what is prepared."""
        return "-".join([self.script.removesuffix(".sh"), *self.languages, f"{self.subwords}{self.vocabulary}"])

    @property
    def target_subwords(self) -> str:
        """The kind on the target side."""
        return self.subwords.split(",")[-1]

    def read_translations(self, decoded: Path, count: int) -> list[str]:
        """Text of what fairseq-generate wrote.  Raises ValueError if it has not `count` sentences."""
        kind = self.target_subwords
        lines = read_generate(read_lines(decoded), str(decoded), count)
        return to_text(lines, UNDO.get(kind, "sentencepiece"), self.languages[1] if KINDS[kind][0] else None)


@dataclass(frozen=True)
class System:
    """One row of a table at one scale.

    options: of fairseq-train, data, seed and epochs apart.  sampled: options of subword regularization, if the
    training text is cut anew in each epoch.  averaged: how many of the last checkpoints of --save-interval-updates are
    averaged, 0 for the best one as it is.  decode: options of fairseq-generate.
    members: rows and seeds whose models are decoded, as an ensemble if there are several; nothing is then trained.
    tokenized: BLEU of Moses tokens too, as older papers have it.  lowercase: both without regard to case too.
    """

    corpus: Corpus
    options: tuple[str, ...] = ()
    epochs: int = 0
    sampled: tuple[str, ...] = ()
    averaged: int = 0
    decode: tuple[str, ...] = DECODE
    members: tuple[tuple[str, int], ...] = ()
    tokenized: bool = False
    lowercase: bool = False


class TranslationRecipe(Recipe):
    """Rows that are systems: a subclass says which (`system`)."""

    paper = "nmt_lectures"

    @abstractmethod
    def system(self, cell: Cell) -> System:
        """What the cell is.  Raises ValueError if there is no such cell."""

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {"copy": self.rows[0]}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        system = self.system(run.cell)
        languages = system.corpus.languages
        metrics = ("tokenized_bleu", "bleu", "chrf") if system.tokenized else ("bleu", "chrf")
        found = measure("copy", data, languages=languages, metrics=metrics)
        if system.lowercase:
            found += measure("copy", data, languages=languages, metrics=("tokenized_bleu", "bleu"), lowercase=True)
        return found

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        system = self.system(cell)
        members = [self.settings(Cell(row, seed, cell.scale)) for row, seed in system.members]
        return {**asdict(system), "members": [list(m) for m in zip(system.members, members, strict=True)]}

    def prepare(self, run: Run) -> Path:
        """The folder that data-prep makes of the corpus: bin/, raw/, text/ and the subword model."""
        corpus, scale = self.system(run.cell).corpus, run.cell.scale
        source, target = corpus.languages
        if corpus.script != "multi30k.sh":
            if run.source is None or not (run.source / "bin" / f"dict.{source}.txt").is_file():
                raise ValueError(f"{run.cell.row}: --from DIR is the folder that data-prep/{corpus.script} made (with "
                                 f"bin/dict.{source}.txt)")
            if not (run.source / "raw" / f"test.{target}").is_file():
                raise ValueError(f"{run.source / 'raw' / f'test.{target}'}: no such file")
            return run.source
        words = ["env", f"PYTHON={sys.executable}", "bash", ROOT / "data-prep" / corpus.script]
        words += ["--src", source, "--trg", target, "--subwords", corpus.subwords]
        words += ["--vocabulary", corpus.vocabulary]
        # as characters a sentence is five times as long as in subwords
        words += ["--max-length", "1000"] if "characters" in corpus.subwords else []
        if scale == "smoke":
            words += ["--from", run.prepared("multi30k-made-up", write_made_up), "--unchecked"]
        else:
            raw = run.raw_data("multi30k")
            words += ["--from", raw] if raw else []

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell}: preparing the corpus")
            run.command([*words, "--out", folder])

        return run.prepared(f"{corpus.name}{'-made-up' if scale == 'smoke' else ''}", make)

    def train(self, run: Run, data: Path) -> Path:
        """Train the system, or its members; of several checkpoints to decode as an ensemble the names, with colons."""
        system = self.system(run.cell)
        if system.members:
            return Path(":".join(map(str, self._members(run, system))))
        options = [*system.options, "--source-lang", system.corpus.languages[0]]
        options += ["--target-lang", system.corpus.languages[1]]
        if system.sampled:
            model = data / KINDS[system.corpus.subwords][1].replace("%s", "")
            options += ["--task", "translation_subword_regularization", "--training-text", str(data / "text" / "train")]
            options += ["--source-subword-model", str(model), "--target-subword-model", str(model), *system.sampled]
        else:
            options += ["--task", "translation"]
        best = run.fairseq_train(data / "bin", options, epochs=system.epochs)
        if not system.averaged:
            return best
        from seqstruct.bridge.averaging import average_checkpoints

        saved = sorted(best.parent.glob("checkpoint_*_*.pt"), key=lambda p: int(p.stem.split("_")[2]))
        if not saved:
            raise ValueError(f"{best.parent}: expected checkpoints to average, found none")
        average_checkpoints(saved[-system.averaged :], run.folder / "averaged.pt")
        return run.folder / "averaged.pt"

    def _members(self, run: Run, system: System) -> list[Path]:
        """The members' checkpoints, trained where they are not yet; what they took is written down for this run."""
        checkpoints, took = [], []
        for row, seed in system.members:
            other = self.member(run, row, seed)
            other.folder.mkdir(parents=True, exist_ok=True)
            checkpoints.append(self.train(other, self.prepare(other)))
            took.append(read_json(other.folder / "trained.json"))
        write_json(run.folder / "trained.json", {
            "seconds": sum(t["seconds"] for t in took), "peak_memory": max(t["peak_memory"] for t in took),
            "parameters": sum(t["parameters"] for t in took),
        })
        return checkpoints

    def member(self, run: Run, row: str, seed: int) -> Run:
        """The run of another row of this recipe, at the same scale."""
        return Run(self, Cell(row, seed, run.cell.scale), run.root.parent, progress=run.progress, source=run.source)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        system = self.system(run.cell)
        languages, target = system.corpus.languages, system.corpus.languages[1]
        references = list(read_lines(data / "raw" / f"test.{target}"))
        decoded = generate(run, data / "bin", checkpoint, languages, ("--gen-subset", "test", *system.decode))
        text = system.corpus.read_translations(decoded, len(references))
        bleu, chrf = score(text, [references])
        run.progress.say(f"{run.cell}: {bleu.signature}")
        found = [("test_bleu", bleu.value, "BLEU"), ("test_chrf", chrf.value, "chrF2")]
        if system.tokenized:
            (tokens,) = score(text, [references], ["tokenized_bleu"], language=target)
            run.progress.say(f"{run.cell}: {tokens.signature}")
            found.insert(0, ("test_tokenized_bleu", tokens.value, "BLEU"))
        if system.lowercase:
            tokens, lower = score(text, [references], ["tokenized_bleu", "bleu"], lowercase=True, language=target)
            run.progress.say(f"{run.cell}: {tokens.signature}; {lower.signature}")
            found.insert(0, ("test_tokenized_bleu_lowercased", tokens.value, "BLEU"))
            found.insert(2, ("test_bleu_lowercased", lower.value, "BLEU"))
        trained = [self.member(run, *member) for member in system.members] or [run]
        if len(trained) == 1:
            found.insert(0, ("validation_perplexity", validation_perplexity(trained[0]), "perplexity"))
        found.append(("parameters", run.parameters, "parameters"))
        if not system.members:
            found.append(("training_tokens_per_second", tokens_per_second_of_training(run), "tokens/s"))
        found.append(("decoding_sentences_per_second", sentences_per_second(run.folder / "decode.log"), "sentences/s"))
        return [Measurement(*values) for values in found]


def tokens_per_second_of_training(run: Run) -> float:
    """The median of what fairseq-train logged within epochs, of target tokens.  Raises ValueError if it logged none."""
    log = run.folder / "train.log"
    inner = [entry.statistics for entry in parse_lines(read_lines(log)) if entry.tag == "train_inner"]
    found = [statistic["wps"] for statistic in inner if "wps" in statistic]
    if not found:
        raise ValueError(f"{log}: expected statistics of 25 updates or more")
    return statistics.median(found)


def sentences_per_second(log: Path) -> float:
    """What fairseq-generate said last of its own speed, without loading and writing.

    Raises ValueError if it says nothing.
    """
    found = re.findall(r"Translated [\d,]+ sentences .*?\(([\d.]+) sentences/s", log.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{log}: expected the line of fairseq-generate that gives its speed")
    return float(found[-1])
