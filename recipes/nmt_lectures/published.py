"""What the recipes of published tables share: rows at the published setting (scale paper), and made-up pairs (smoke).

The corpora are what data-prep makes, named by --from; scores are SacreBLEU and, as the tables have it, BLEU of tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from systems import LENGTHS, Corpus, System, TranslationRecipe

from seqstruct.harness.recipe import Cell, Estimate

SMOKE_EPOCHS = 2
# later options of a command win: these make any of the models small
TINY = {
    "rnn": (
        "--embed-dim", "32", "--hidden-size", "32", "--maxout-size", "32", "--encoder-layers", "3", "--decoder-layers",
        "3", "--batch-size", "20",
    ),
    "fconv": (
        "--encoder-embed-dim", "32", "--encoder-layers", "[(32, 3)] * 2", "--decoder-embed-dim", "32",
        "--decoder-layers", "[(32, 3)] * 2", "--decoder-out-embed-dim", "32", "--batch-size", "20",
        "--update-freq", "1",
    ),
    "structured_transformer": (
        "--encoder-embed-dim", "32", "--encoder-ffn-embed-dim", "64", "--decoder-embed-dim", "32",
        "--decoder-ffn-embed-dim", "64", "--encoder-layers", "2", "--decoder-layers", "2", "--encoder-attention-heads",
        "4", "--decoder-attention-heads", "4", "--batch-size", "20", "--update-freq", "1",
        "--save-interval-updates", "15", "--keep-interval-updates", "2",
    ),
}  # fmt: skip


class PublishedTable(TranslationRecipe):
    """Rows at the published setting.

    smoke_vocabulary: by kind of subwords, of the made-up pairs.
    """

    family = "published translation tables"
    seeds: ClassVar = {"smoke": 1, "small": 1, "paper": 1}
    max_minutes: ClassVar = {"smoke": 3.0, "small": None, "paper": None}
    licence = "WMT, IWSLT and KFTT corpora: see their scripts in data-prep/; smoke: none needed"
    smoke_vocabulary: ClassVar = {"bpe": "150", "sentencepiece": "35", "words": "30", "mixed": "20", "characters": "1"}

    @abstractmethod
    def published(self, row: str, seed: int) -> System:
        """The published setting of a row."""

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """All rows.  Raises ValueError at scale small, which there is not."""
        found = super().cells(scale, seeds)
        self.system(found[0])
        return found

    def baselines(self, scale: str) -> Mapping[str, str]:
        """A copy of the source for each pair of languages."""
        if scale == "small":
            return {}
        rows = self.smoke_rows or self.rows[:1] if scale == "smoke" else self.rows
        pairs = {self.published(row, 1).corpus.languages: row for row in rows}
        return {f"{'-'.join(pair)} copy" if len(pairs) > 1 else "copy": row for pair, row in pairs.items()}

    def system(self, cell: Cell) -> System:
        if cell.scale == "small":
            raise ValueError(f"table {self.table} has the scales smoke and paper; at scale small multi30k.py has the "
                             "same models on Multi30k")
        system = replace(self.published(cell.row, cell.seed), tokenized=True)
        if cell.scale == "paper" or system.members:
            return replace(system, corpus=self._smoke_corpus(system)) if cell.scale == "smoke" else system
        arch = system.options[system.options.index("--arch") + 1]
        kind = next(name for name in TINY if arch.startswith(name))
        return replace(
            system, corpus=self._smoke_corpus(system), options=(*system.options, *TINY[kind]), epochs=SMOKE_EPOCHS,
            averaged=min(system.averaged, 2),
        )

    def _smoke_corpus(self, system: System) -> Corpus:
        kinds = system.corpus.subwords
        sizes = ",".join(self.smoke_vocabulary[kind] for kind in kinds.split(","))
        if "," in system.corpus.vocabulary and "," not in sizes:
            sizes = f"{sizes},{sizes}"
        return Corpus(subwords=kinds, vocabulary=sizes)

    def dataset(self, cell: Cell) -> str:
        corpus = self.system(cell).corpus
        where = "400 made-up sentence pairs" if cell.scale == "smoke" else f"what data-prep/{corpus.script} makes"
        sizes = corpus.vocabulary.replace(",", " and ")
        return f"{where}, {'-'.join(corpus.languages)}, {corpus.subwords.replace(',', ' to ')} of {sizes} types"

    def estimate(self, cell: Cell) -> Estimate:
        """Minutes of one GPU at scale paper."""
        times = max(1, len(self.system(cell).members))
        minutes, disk = {"smoke": (0.5, 5.0), "paper": (60.0 * 24 * 4, 15000.0)}[cell.scale]
        return Estimate(minutes * times, disk)


def rates(*by_epoch: float) -> tuple[str, ...]:
    """Options of a learning rate for each epoch, the last one for all that follow."""
    return ("--lr-scheduler", "fixed", "--lr", ",".join(f"{rate:g}" for rate in by_epoch))


def sgd(clip: float, batch: int, *by_epoch: float) -> tuple[str, ...]:
    """Plain gradient descent on the mean over sentences."""
    return (
        "--criterion", "structured_cross_entropy", "--optimizer", "sgd", "--momentum", "0", "--sentence-avg",
        "--clip-norm", f"{clip:g}", "--batch-size", str(batch), *rates(*by_epoch),
    )  # fmt: skip


# Wu et al. (2016), sec. 7 and 8, without the gradient descent that follows Adam
GNMT_TRAINING = (
    "--criterion", "structured_cross_entropy", "--label-smoothing", "0", "--optimizer", "adam", "--lr", "0.0002",
    "--clip-norm", "5", "--batch-size", "128",
)  # fmt: skip
GNMT_DECODE = ("--task", "translation_gnmt", "--length-alpha", "0.2", "--coverage-beta", "0.2", "--beam", "8", *LENGTHS)
