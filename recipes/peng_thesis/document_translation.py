"""Translation of documents in windows of four sentences (Peng 2022, Table 5.5b): softmax, Linformer, ABC.

Scale paper is IWSLT14 Spanish to English, --from DIR the folder that data-prep/iwslt14_documents.sh made; the last five
checkpoints, a thousand updates apart, are averaged (the thesis: of the last five epochs).
The rows of table 5.5b-stand-in, at scales small and smoke, are no documents: captions of Multi30k (made-up sentences)
that happen to follow one another, eight to a "document", which need no context.  They show that windows train, that
decoding goes on from its own translations, and what memory sizes of a quarter cost.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import efficient_translation as translation

from seqstruct.bridge.averaging import average_checkpoints
from seqstruct.data.aligned import find_text, read_lines
from seqstruct.data.files import atomic_write
from seqstruct.harness.baselines import measure
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.harness.translate import corpus_scores, validation_perplexity

SCRIPT = Path(__file__).resolve().parents[2] / "data-prep" / "multi30k.sh"
PUBLISHED = {
    "BASE": ("softmax", "softmax"), "Linformer 128-64": ("linformer(slots=64)", "linformer(slots=128)"),
    "ABC-RD 128-64": ("abc_random(slots=64)", "abc_random(slots=128)"),
    "ABC-MLP 128-64": ("abc_mlp(slots=64)", "abc_mlp(slots=128)"),
}  # fmt: skip
SMALL = {"BASE": ("softmax", "softmax"), "ABC-MLP 32-16": ("abc_mlp(slots=16)", "abc_mlp(slots=32)")}
SENTENCES = 8  # of what stands in for a document


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.  pairs: to train on, 0: all; a twentieth to validate and test.  vocabulary: joint BPE."""

    pairs: int
    vocabulary: int
    embed_dim: int
    ffn_embed_dim: int
    epochs: int
    updates: int
    learning_rate: float
    max_tokens: int


SETTINGS = {
    "smoke": Setting(320, 150, 32, 64, 3, 90, 0.005, 700),
    "small": Setting(8000, 3000, 128, 256, 3, 840, 0.004, 2000),
    "paper": Setting(0, 30000, 512, 1024, 1000, 100_000, (512 * 4000) ** -0.5, 4096),
}


def plans(row: str, scale: str) -> tuple[str, str]:
    """Attention of the decoder itself and across."""
    return (PUBLISHED if scale == "paper" else SMALL)[row]


def languages(scale: str) -> tuple[str, str]:
    """Source and target."""
    return ("es", "en") if scale == "paper" else ("de", "en")


def train_options(row: str, scale: str) -> list[str]:
    """fairseq-train's options; data, seed and epochs apart.  Table B.2 at scale paper."""
    setting, (source, target) = SETTINGS[scale], languages(scale)
    causal, cross = plans(row, scale)
    if scale == "paper":
        options = [
            "--arch", "structured_transformer_abc_documents", "--lr", f"{setting.learning_rate:.6g}", "--lr-scheduler",
            "inverse_sqrt", "--warmup-updates", "4000", "--max-update", str(setting.updates), "--adam-betas",
            "(0.9, 0.98)", "--save-interval-updates", "1000", "--keep-interval-updates", "5", "--patience", "20",
        ]  # fmt: skip
    else:
        sizes = (setting.embed_dim, setting.ffn_embed_dim, setting.updates, setting.learning_rate)
        options = translation.compact(*sizes)
    return [
        "--task", "document_translation", "--source-lang", source, "--target-lang", target, *options,
        "--decoder-self-attention", causal, "--cross-attention", cross, "--optimizer", "adam",
        "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1",
        "--max-tokens", str(setting.max_tokens),
    ]  # fmt: skip


# appendix B.1.2: beam 5, length penalty 0.6; limits are of whole windows
DECODE = ("--task", "document_translation", "--beam", "5", "--lenpen", "0.6", "--max-len-a", "1.5", "--max-len-b", "20")


class DocumentTranslation(Recipe):
    """SacreBLEU of all sentences on the raw references, with predicted context."""

    paper = "peng_thesis"
    table = "5.5b"
    stand_in = "5.5b-stand-in"
    family = "efficient attention translation"
    rows = tuple(dict.fromkeys((*SMALL, *PUBLISHED)))
    smoke_rows = ("ABC-MLP 32-16",)
    licence = "IWSLT14: CC BY-NC-ND; Multi30k: for research; made-up sentences at the smoke scale: none needed"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """The published rows at scale paper, the stand-ins at the others."""
        rows = PUBLISHED if scale == "paper" else SMALL
        return [cell for cell in super().cells(scale, seeds) if cell.row in rows]

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {"copy": "BASE"}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        languages_of = languages(run.cell.scale)
        return measure("copy", data, languages=languages_of, metrics=("bleu",), splits=("valid", "test"))

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {**asdict(SETTINGS[cell.scale]), "train_options": train_options(cell.row, cell.scale),
                "decode_options": DECODE, "sentences": SENTENCES}  # fmt: skip

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        if cell.scale == "paper":
            return "IWSLT14 es-en, documents, dev2010 and tst2010-2012, windows of 4 sentences"
        text = "Multi30k de-en" if cell.scale == "small" else "made-up sentences"
        return f"{text}, {setting.pairs} pairs, {SENTENCES} at a time in place of documents, {setting.epochs} epochs"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.5, "small": 8.0, "paper": 60.0 * 24}[cell.scale]
        disk = {"smoke": 5.0, "small": 60.0, "paper": 6000.0}[cell.scale]
        return Estimate(minutes, disk, download=1.3 if cell.scale == "small" else 0.0)

    def prepare(self, run: Run) -> Path:
        if run.cell.row not in (PUBLISHED if run.cell.scale == "paper" else SMALL):
            scales = "paper alone" if run.cell.row in PUBLISHED else "small and smoke alone"
            raise ValueError(f"row {run.cell.row}: at scale {scales}")
        if run.cell.scale == "paper":
            if run.source is None or not (run.source / "text" / "train.docs").is_file():
                raise ValueError("--from DIR is the folder that data-prep/iwslt14_documents.sh made, "
                                 "with text/train.docs")
            return run.source
        setting = SETTINGS[run.cell.scale]
        source = None if run.cell.scale == "smoke" else run.raw_data("multi30k")
        if run.cell.scale == "small" and source is None:
            raise ValueError("--from DIR is a folder with the raw files of Multi30k; nothing is downloaded")

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell}: preparing the corpus")
            write_documents(run, source, setting, folder)

        return run.prepared(f"documents-{run.cell.scale}-{setting.pairs}-{setting.vocabulary}", make)

    def train(self, run: Run, data: Path) -> Path:
        return run.fairseq_train(
            data / "bin", train_options(run.cell.row, run.cell.scale), epochs=SETTINGS[run.cell.scale].epochs
        )

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        if run.cell.scale == "paper":
            kept = (run.folder / "checkpoints").glob("checkpoint_*_*.pt")
            average_checkpoints(sorted(kept, key=lambda path: int(path.stem.split("_")[2])), run.folder / "averaged.pt")
            checkpoint = run.folder / "averaged.pt"
        found = []
        for subset, name in (("valid", "validation"), ("test", "test")):
            options = (*DECODE, "--gen-subset", subset)
            bleu = corpus_scores(run, data, checkpoint, languages(run.cell.scale), options, subset)[0].value
            found.append(Measurement(f"{name}_bleu", bleu, "BLEU"))
        return [
            *found,
            Measurement("validation_perplexity", validation_perplexity(run), "perplexity"),
            Measurement("parameters", run.parameters, "parameters"),
        ]


def write_documents(run: Run, source: Path | None, setting: Setting, folder: Path) -> None:
    """bin/, raw/ and text/ of the first pairs, with SPLIT.docs.

    source: raw Multi30k; None: made-up sentences.  Raises ValueError if a file is missing.
    """
    counts = {"train": setting.pairs, "val": setting.pairs // 20, "test_2016_flickr": setting.pairs // 20}
    if source is None:
        source = run.prepared("multi30k-made-up", sys.modules[type(translation.MULTI30K).__module__].write_made_up)
    with_few = folder / "few"
    lines = {}
    for name, count in counts.items():
        for language in languages(run.cell.scale):
            lines[name] = list(islice(read_lines(find_text(source / name, language)), count))
            with atomic_write(with_few / f"{name}.{language}") as stream:
                stream.writelines(line + "\n" for line in lines[name])
    run.command([
        "env", f"PYTHON={sys.executable}", "bash", SCRIPT, "--from", with_few, "--unchecked", "--max-length", "1000",
        "--vocabulary", str(setting.vocabulary), "--out", folder / "corpus",
    ])  # fmt: skip
    for part in (folder / "corpus").iterdir():
        part.rename(folder / part.name)
    (folder / "corpus").rmdir()
    for split in ("train", "valid", "test"):
        count = sum(1 for _ in read_lines(folder / "text" / f"{split}.{languages(run.cell.scale)[0]}"))
        parts = [SENTENCES] * (count // SENTENCES) + ([count % SENTENCES] if count % SENTENCES else [])
        with atomic_write(folder / "text" / f"{split}.docs") as stream:
            stream.writelines(f"{part}\n" for part in parts)


recipe = DocumentTranslation()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
