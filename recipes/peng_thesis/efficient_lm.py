"""Language modeling with attention of linear cost (Peng 2022, Tables 4.3 and 5.4a): softmax, elu, RFA, bounded memory.

The rows of Table 4.3 are on WikiText-103, at scale paper alone: --from DIR holds wiki.{train,valid,test}.tokens as
published by Merity et al. (2017), lines of words with <unk>; blocks of 512 tokens without context; the rate in the
middle of those searched over, the least dropout.  The stateful row, which hands (S, z) on to the next batch, is not
trained here.
The rows of table 4.3-stand-in are on the Brown corpus, at scales small and smoke, by subwords, perplexity counted by
word (an end of sentence is one), also on the test text of WikiText-2, lowercased as Brown is; with no context and with
256 tokens.  Characters that Brown lacks are unknown there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from seqstruct.data import corpora, subwords
from seqstruct.data.files import atomic_write
from seqstruct.harness.command import main
from seqstruct.harness.process import fairseq
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run

PLANS = {
    "BASE": "softmax",
    "phi-elu": "linear",
    "RFA-Gaussian": "rfa(features=64)",
    "RFA-arccos": "rfa(features=64, kernel='arccos')",
    "RFA-GATE-Gaussian": "rfa(features=64, gate=True)",
    "RFA-GATE-arccos": "rfa(features=64, kernel='arccos', gate=True)",
    "Linformer": "linformer(slots=32, length=512)",
    "ABC-RD": "abc_random(slots=32, period=512)",
    "ABC-MLP": "abc_mlp(slots=32)",
}
STAND_INS = ("BASE", "phi-elu", "RFA-Gaussian", "RFA-GATE-Gaussian", "Linformer", "ABC-RD", "ABC-MLP")
TABLE_4_3 = ("BASE", "phi-elu", "RFA-Gaussian", "RFA-arccos", "RFA-GATE-Gaussian", "RFA-GATE-arccos")
SIZES = {  # Table A.2: layers, heads, size, inner size, dropout
    "small": (6, 8, 512, 2048, 0.05),
    "big": (16, 16, 1024, 4096, 0.2),
}
BLOCK = 512  # tokens, of training and evaluation


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    train_lines: sentences of Brown, 0: WikiText-103.  subwords: types.  shape: layers, heads, size, inner size,
    dropout; None: of the row.  blocks: in a batch.  epochs: at most.  updates: of the schedule.  context: tokens read
    before those that are counted.
    """

    train_lines: int
    subwords: int
    shape: tuple[int, int, int, int, float] | None
    blocks: int
    epochs: int
    learning_rate: float
    updates: int
    context: tuple[int, ...]


SETTINGS = {
    "smoke": Setting(300, 500, (1, 2, 16, 32, 0.0), 4, 2, 0.01, 10, (0,)),
    "small": Setting(8000, 8000, (4, 4, 128, 512, 0.1), 4, 3, 0.002, 330, (0, 256)),
    "paper": Setting(0, 0, None, 64, 100, 2.5e-4, 150_000, (0,)),
}


def train_options(row: str, setting: Setting) -> list[str]:
    """fairseq-train's options; data, seed and epochs apart."""
    size, _, model = row.rpartition(" ")
    layers, heads, dim, inner, dropout = setting.shape or SIZES[size]
    warm_up = min(6000, setting.updates // 10)
    return [
        "--task", "language_modeling", "--sample-break-mode", "none", "--tokens-per-sample", str(BLOCK),
        "--arch", "structured_transformer_lm", "--decoder-self-attention", PLANS[model],
        "--decoder-layers", str(layers), "--decoder-attention-heads", str(heads), "--decoder-embed-dim", str(dim),
        "--decoder-ffn-embed-dim", str(inner), "--decoder-normalize-before", "--dropout", str(dropout),
        *(("--adaptive-input", "--tie-adaptive-weights", "--adaptive-input-cutoff", "20000,60000",
           "--adaptive-softmax-cutoff", "20000,60000", "--criterion", "adaptive_loss") if setting.shape is None else
          ("--share-decoder-input-output-embed", "--criterion", "cross_entropy")),
        "--batch-size", str(setting.blocks), "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)",
        "--clip-norm", "0.25", "--lr", f"{setting.learning_rate:g}", "--lr-scheduler", "cosine",
        "--warmup-updates", str(warm_up), "--max-update", str(setting.updates),
    ]  # fmt: skip


class EfficientLanguageModels(Recipe):
    """Perplexity of a word in a running text."""

    paper = "peng_thesis"
    table = "4.3"
    family = "efficient attention language models"
    rows = (*STAND_INS, *(f"{size} {model}" for size in SIZES for model in TABLE_4_3))
    smoke_rows = ("ABC-MLP",)
    seeds = {"smoke": 1, "small": 1, "paper": 1}
    licence = "WikiText: CC BY-SA; Brown: non-commercial; made-up sentences at the smoke scale: none needed"
    progress_metric = "ppl"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """WikiText-103 at scale paper, the stand-ins at the others."""
        return [cell for cell in super().cells(scale, seeds) if (cell.row in STAND_INS) == (scale != "paper")]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        return {**asdict(setting), "train_options": train_options(cell.row, setting)}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        if cell.scale == "paper":
            return "WikiText-103, blocks of 512 words, 150,000 updates"
        if cell.scale == "smoke":
            return f"{setting.train_lines} made-up sentences"
        return (
            f"Brown corpus (no part of the published comparison), the first {setting.train_lines} training sentences, "
            f"{setting.subwords} subwords of them, {setting.epochs} epochs; WikiText-2's test text, lowercased"
        )

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.3, "small": 5.0, "paper": 60.0 * 24 * 4}[cell.scale]
        return Estimate(minutes, disk={"smoke": 2.0, "small": 60.0, "paper": 4000.0}[cell.scale], download=0.0)

    def prepare(self, run: Run) -> Path:
        setting, scale = SETTINGS[run.cell.scale], run.cell.scale
        sources = [None, None]
        if scale == "paper":
            sources = [run.source, None]
        elif scale == "small":
            sources = [run.raw_data("nltk"), run.raw_data("wikitext-2-raw")]
        if scale != "smoke" and sources[0] is None:
            raise ValueError(f"row {run.cell.row}: --from DIR is needed; nothing is downloaded")

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell}: preparing the text")
            if scale == "paper":
                texts = {split: read(sources[0] / f"wiki.{split}.tokens") for split in corpora.SPLITS}
            else:
                texts = brown(sources, setting.train_lines) if scale == "small" else made_up(setting.train_lines)
                subwords.learn_bpe(texts["train"], folder / "codes", setting.subwords)
                apply = subwords.load_bpe(folder / "codes")
                texts = {split: [apply(line) for line in lines] for split, lines in texts.items()}
            binarise(run, folder, texts)

        return run.prepared(f"running-text-{scale}-{setting.train_lines}-{setting.subwords}", make)

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        return run.fairseq_train(data / "bin", train_options(run.cell.row, setting), epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        table = "4.3" if run.cell.scale == "paper" else "4.3-stand-in"
        found = []
        for subset, name in (("valid", "validation"), ("test", "test"), ("test1", "wikitext2_test")):
            if not (data / "bin" / f"{subset}.bin").exists():
                continue
            for context in SETTINGS[run.cell.scale].context:
                value = perplexity(run, data / "bin", checkpoint, subset, context)
                suffix = f"_context_{context}" if context else ""
                found.append(Measurement(f"{name}_perplexity{suffix}", value, "perplexity", table=table))
        return [*found, Measurement("parameters", run.parameters, "parameters", table=table)]


def perplexity(run: Run, binarised: Path, checkpoint: Path, subset: str, context: int) -> float:
    """Of a word, by fairseq-eval-lm; context: tokens of each block that are read and not counted."""
    log = run.folder / f"eval-{subset}-{context}.log"
    log.unlink(missing_ok=True)
    command = [*fairseq("eval_lm"), binarised, "--user-dir", PLUGIN, "--path", checkpoint, "--gen-subset", subset]
    command += ["--task", "language_modeling", "--sample-break-mode", "none", "--tokens-per-sample", str(BLOCK)]
    command += ["--context-window", str(context), "--batch-size", "8", "--num-workers", "0"]
    if run.cell.scale != "paper":
        command += ["--post-process", "subword_nmt", "--cpu"]
    run.command(command, log.name)
    found = re.findall(r"Loss \(base 2\): ([\d.]+)", log.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{log}: fairseq-eval-lm gave no loss")
    return 2 ** float(found[-1])


def read(path: Path) -> list[str]:
    """Lines of words.  Raises ValueError if there is no such file."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    return path.read_text(encoding="utf-8").splitlines()


def brown(sources: Sequence[Path | None], train_lines: int) -> dict[str, list[str]]:
    """Brown, lowercased, numbers as N; test1 is WikiText-2's test text, where it is at hand."""
    options = corpora.DEFAULTS["brown"]
    texts = {split: list(corpora.clean(lines, options)) for split, lines in
             corpora.read_lines("brown", sources[0]).items()}
    texts["train"] = list(islice(texts["train"], train_lines))
    if sources[1] is not None:
        words = (" ".join(line.split()) for line in read(sources[1] / "wiki.test.raw"))
        texts["test1"] = [line for line in corpora.clean(words, options) if line]
    return texts


def made_up(train_lines: int) -> dict[str, list[str]]:
    """Counting in circles."""
    lines = [" ".join(f"word{(i + j * (i % 5 + 1)) % 40}" for j in range(10)) for i in range(train_lines)]
    return {"train": lines, "valid": lines[:100], "test": lines[100:200]}


def binarise(run: Run, folder: Path, texts: Mapping[str, Sequence[str]]) -> None:
    """text/SPLIT.txt and bin/; test1 is a second test set, where there is one."""
    for split, lines in texts.items():
        with atomic_write(folder / "text" / f"{split}.txt") as stream:
            stream.writelines(line + "\n" for line in lines)
    paths = {split: str(folder / "text" / f"{split}.txt") for split in texts}
    tests = ",".join(paths[split] for split in ("test", "test1") if split in paths)
    run.command([
        *fairseq("preprocess"), "--only-source", "--destdir", folder / "bin", "--workers", "1",
        "--trainpref", paths["train"], "--validpref", paths["valid"], "--testpref", tests,
    ])  # fmt: skip


recipe = EfficientLanguageModels()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
