"""Attention-based translation (Luong et al. 2015, table 4): WMT'14 English to German, newstest2014.

Four LSTM layers of size 1000, reversed source, input feeding, dropout 0.2; words, 50,000 types of each language;
gradient descent from a rate of 1 that is halved each epoch after the eighth of twelve, batches of 128, gradients
clipped to 5.  Beam 10; hypotheses are compared by log-probability alone.  test_perplexity is of a word.  For "unknown
words replaced" text is decoded once more, and each <unk> becomes the source word with the greatest weight (without the
paper's dictionary).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from published import PublishedTable, sgd
from systems import LENGTHS, Corpus, System

from seqstruct.data.aligned import read_lines
from seqstruct.data.binarise import preprocess
from seqstruct.harness.command import main
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.process import fairseq
from seqstruct.harness.recipe import Measurement
from seqstruct.harness.run import PLUGIN, Run
from seqstruct.harness.translate import generate
from seqstruct.scoring.translation import score

ATTENTION = {
    "global (location)": ("rnn_luong_global", "location"),
    "global (dot)": ("rnn_luong_global", "luong(score='dot')"),
    "global (general)": ("rnn_luong_global", "luong(score='general')"),
    "local-m (dot)": ("rnn_luong_local_m", "local_monotonic(score='dot', half_width=10)"),
    "local-m (general)": ("rnn_luong_local_m", "local_monotonic(score='general', half_width=10)"),
    "local-p (dot)": ("rnn_luong_local_p", "local_predictive(score='dot', half_width=10)"),
    "local-p (general)": ("rnn_luong_local_p", "local_predictive(score='general', half_width=10)"),
}
CORPUS = Corpus("wmt14.sh", ("en", "de"), "words", "50000,50000")
TRAINING = sgd(5.0, 128, *[1.0] * 8, 0.5, 0.25, 0.125, 0.0625)


class Luong(PublishedTable):
    """Perplexity and BLEU, before and after unknown words are replaced."""

    table = "luong"
    rows = tuple(ATTENTION)
    smoke_rows = ("local-p (general)",)

    def published(self, row: str, seed: int) -> System:
        arch, attention = ATTENTION[row]
        options = ("--arch", arch, "--cross-attention", attention, *TRAINING)
        return System(CORPUS, options, epochs=12, decode=("--beam", "10", "--lenpen", "0", *LENGTHS))

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        system, (source, target) = self.system(run.cell), self.system(run.cell).corpus.languages
        found = list(super().evaluate(run, data, checkpoint))
        found.append(Measurement("test_perplexity", self._perplexity(run, data, checkpoint), "perplexity"))
        plain = run.folder / "text"
        if not plain.exists():
            dictionaries = [w for side, name in (("src", source), ("tgt", target))
                            for w in (f"--{side}dict", data / "bin" / f"dict.{name}.txt")]  # fmt: skip
            preprocess(plain, ["--source-lang", source, "--target-lang", target, "--dataset-impl", "raw",
                              "--testpref", data / "text" / "test", *dictionaries])  # fmt: skip
        options = ("--gen-subset", "test", *system.decode, "--dataset-impl", "raw", "--replace-unk")
        decoded = generate(run, plain, checkpoint, (source, target), options, "replaced")
        references = list(read_lines(data / "raw" / f"test.{target}"))
        text = system.corpus.read_translations(decoded, len(references))
        (replaced,) = score(text, [references], ["tokenized_bleu"], language=target)
        found.append(Measurement("test_tokenized_bleu_unknown_words_replaced", replaced.value, "BLEU"))
        return found

    def _perplexity(self, run: Run, data: Path, checkpoint: Path) -> float:
        """Of a word of the test set."""
        log = run.folder / "test.log"
        log.unlink(missing_ok=True)
        command = [*fairseq("validate"), data / "bin", "--user-dir", PLUGIN, "--task", "translation"]
        command += ["--path", checkpoint, "--valid-subset", "test", "--batch-size", "32"]
        command += ["--log-format", "json", "--num-workers", "0"]
        run.command(command + (["--cpu"] if run.cell.scale != "paper" else []), "test.log")
        entries = [entry.statistics for entry in parse_lines(read_lines(log)) if "test_ppl" in entry.statistics]
        if not entries:
            raise ValueError(f"{log}: expected a perplexity, found none")
        return entries[-1]["test_ppl"]


recipe = Luong()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
