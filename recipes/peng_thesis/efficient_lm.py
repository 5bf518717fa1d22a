"""Language modeling with attention of linear cost (Peng 2022, Tables 4.3 and 5.4a): softmax, elu, RFA, bounded memory.

The rows of Table 4.3 are on WikiText-103, at scale paper alone: --from DIR holds wiki.{train,valid,test}.tokens or
wikitext-103-v1.zip as published by Merity et al. (2017); blocks of 512 tokens without context; the rate in the
middle of those searched over, the least dropout.  The stateful row hands (S, z) on to the next block, in training and
evaluation.  Table A.2's "random feature map size" 64 is read as D, half the size of the map, as the same words are
meant in Table A.3.
The rows of table 4.3-stand-in are on the Brown corpus, at scales small and smoke, by subwords, also tested on the test
text of WikiText-2, lowercased as Brown is; with no context, held-out Brown also with 256 tokens of each block of 512.
Characters that Brown lacks are unknown.  "BASE-GATE" is equation A.2, softmax over keys that the gate decays; "NoFloor"
has denominators as in the equations, the other rows of RFA hold them at 1, as the released code.  The averaged model is
the mean of the last five checkpoints, a 24th of the training apart.
Perplexity is counted by word, and an end of line is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.bridge.averaging import average_checkpoints
from seqstruct.data import corpora, subwords
from seqstruct.data.files import atomic_write
from seqstruct.data.made_up.text import counting as made_up
from seqstruct.harness.baselines import ORDERS
from seqstruct.harness.command import main
from seqstruct.harness.process import fairseq
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run

PLANS = {
    "BASE": "softmax",
    "BASE-GATE": "gated_softmax",
    "phi-elu": "linear",
    "RFA-Gaussian": "rfa(features=128)",
    "RFA-arccos": "rfa(features=64, kernel='arccos')",
    "RFA-GATE-Gaussian": "rfa(features=128, gate=True)",
    "RFA-GATE-arccos": "rfa(features=64, kernel='arccos', gate=True)",
    "RFA-GATE-Gaussian-Stateful": "rfa(features=128, gate=True)",
    "RFA-Gaussian-NoFloor": "rfa(features=128, floor=0.0)",
    "RFA-GATE-Gaussian-NoFloor": "rfa(features=128, gate=True, floor=0.0)",
    "Linformer": "linformer(slots=32, length=512)",
    "ABC-RD": "abc_random(slots=32, period=512)",
    "ABC-MLP": "abc_mlp(slots=32)",
}
STAND_INS = (
    "BASE", "phi-elu", "RFA-Gaussian", "RFA-GATE-Gaussian", "RFA-GATE-Gaussian-Stateful", "RFA-Gaussian-NoFloor",
    "RFA-GATE-Gaussian-NoFloor", "Linformer", "ABC-RD", "ABC-MLP", "BASE-GATE",
)  # fmt: skip
TABLE_4_3 = (
    "BASE", "phi-elu", "RFA-Gaussian", "RFA-arccos", "RFA-GATE-Gaussian", "RFA-GATE-arccos",
    "RFA-GATE-Gaussian-Stateful",
)  # fmt: skip
SIZES = ("small", "big")  # of Table A.2
BLOCK = 512  # tokens, of training and evaluation
AVERAGED = 5  # checkpoints
ADAPTIVE = ("--criterion", "adaptive_loss", "--ddp-backend", "legacy_ddp")  # fairseq refuses the one without the other
SUBSETS = {"valid": "validation", "test": "test", "test1": "wikitext2_test"}


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    train_lines: sentences, 51752 are all of Brown's, 0: WikiText-103.  subwords: types.  shape: layers, heads, size,
    inner size, dropout; None: of the row.  blocks: in a batch.  epochs: at most.  updates: of the schedule.
    validated: updates before the first validation, which each saved checkpoint has.  context: tokens read before those
    that are counted, by subset.
    """

    train_lines: int
    subwords: int
    shape: tuple[int, int, int, int, float] | None
    blocks: int
    epochs: int
    learning_rate: float
    updates: int
    validated: int
    context: Mapping[str, tuple[int, ...]]


SETTINGS = {
    "smoke": Setting(300, 500, (1, 2, 16, 32, 0.0), 4, 2, 0.01, 10, 0, {"test": (0, 256)}),
    "small": Setting(
        51752, 8000, (4, 4, 128, 512, 0.1), 2, 3, 0.001, 3843, 3200, {"valid": (0,), "test": (0, 256), "test1": (0,)}
    ),
    "paper": Setting(0, 0, None, 64, 100, 2.5e-4, 150_000, 0, {"valid": (0,), "test": (0,)}),
}


def stateful(row: str) -> bool:
    """Whether a memory is carried from block to block."""
    return row.endswith("-Stateful")


def train_options(row: str, setting: Setting) -> list[str]:
    """fairseq-train's options; data, seed and epochs apart."""
    size, _, model = row.rpartition(" ")
    options = [
        "--task", "stream_language_modeling" if stateful(row) else "language_modeling",
        "--tokens-per-sample", str(BLOCK), "--decoder-self-attention", PLANS[model],
    ]  # fmt: skip
    if not stateful(row):
        options += ["--sample-break-mode", "none"]
    if setting.shape is None:
        options += ["--arch", f"structured_transformer_lm_wikitext103_{size}", *ADAPTIVE]
    else:
        layers, heads, dim, inner, dropout = setting.shape
        options += [
            "--arch", "structured_transformer_lm", "--decoder-layers", str(layers),
            "--decoder-attention-heads", str(heads), "--decoder-embed-dim", str(dim),
            "--decoder-ffn-embed-dim", str(inner), "--dropout", str(dropout), "--share-decoder-input-output-embed",
            "--criterion", "cross_entropy", "--save-interval-updates", str(max(1, setting.updates // 24)),
            "--keep-interval-updates", str(AVERAGED), "--validate-after-updates", str(setting.validated),
        ]  # fmt: skip
    return options + [
        "--batch-size", str(setting.blocks), "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)",
        "--clip-norm", "0.25", "--lr", f"{setting.learning_rate:g}", "--lr-scheduler", "cosine",
        "--warmup-updates", str(min(6000, setting.updates // 10)), "--max-update", str(setting.updates),
    ]  # fmt: skip


class EfficientLanguageModels(Recipe):
    """Perplexity of a word in a running text."""

    paper = "peng_thesis"
    table = "4.3"
    stand_in = "4.3-stand-in"
    family = "efficient attention language models"
    rows = (*STAND_INS, *(f"{size} {model}" for size in SIZES for model in TABLE_4_3))
    smoke_rows = ("ABC-MLP", "RFA-GATE-Gaussian-Stateful")
    seeds = {"smoke": 1, "small": 1, "paper": 1}
    licence = "WikiText: CC BY-SA; Brown: non-commercial; made-up sentences at the smoke scale: none needed"
    progress_metric = "ppl"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """WikiText-103 at scale paper, the stand-ins at the others."""
        return [cell for cell in super().cells(scale, seeds) if (cell.row in STAND_INS) == (scale != "paper")]

    def baselines(self, scale: str) -> Mapping[str, str]:
        return dict.fromkeys(ORDERS, "small BASE" if scale == "paper" else "BASE")

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        return {**asdict(setting), "train_options": train_options(cell.row, setting)}

    def dataset(self, cell: Cell) -> str:
        return describe(SETTINGS[cell.scale], cell.scale)

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.3, "small": 15.0, "paper": 60.0 * 24 * 4}[cell.scale]
        return Estimate(minutes, disk={"smoke": 2.0, "small": 200.0, "paper": 4000.0}[cell.scale], download=0.0)

    def prepare(self, run: Run) -> Path:
        return prepare_text(run, SETTINGS[run.cell.scale])

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        return run.fairseq_train(data / "bin", train_options(run.cell.row, setting), epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        found = []
        for subset, contexts in SETTINGS[run.cell.scale].context.items():
            if not (data / "bin" / f"{subset}.bin").exists():
                continue
            for context in contexts[:1] if stateful(run.cell.row) else contexts:
                value = perplexity(run, data, checkpoint, subset, context, carried=stateful(run.cell.row))
                suffix = f"_context_{context}" if context else ""
                found.append(Measurement(f"{SUBSETS[subset]}_perplexity{suffix}", value, "perplexity"))
        if run.cell.scale != "paper":
            average_checkpoints(every_so_often(checkpoint.parent), run.folder / "averaged.pt")
            value = perplexity(run, data, run.folder / "averaged.pt", "test", 0, carried=stateful(run.cell.row))
            found.append(Measurement("test_perplexity_averaged", value, "perplexity"))
        return [*found, Measurement("parameters", run.parameters, "parameters")]


def perplexity(
    run: Run, data: Path, checkpoint: Path, subset: str, context: int, *, carried: bool = False,
    overrides: Mapping[str, Any] | None = None,
) -> float:
    """Of a word, an end of line among them, by fairseq-eval-lm.

    context: tokens of each block that are read and not counted.  carried: whether the text is read as one stream.
    overrides: of the checkpoint's model.
    """
    log = run.folder / f"eval-{checkpoint.stem}-{subset}-{context}.log"
    log.unlink(missing_ok=True)
    command = [*fairseq("eval_lm"), data / "bin", "--user-dir", PLUGIN, "--path", checkpoint, "--gen-subset", subset]
    command += ["--tokens-per-sample", str(BLOCK), "--num-workers", "0"]
    if carried:
        command += ["--task", "stream_language_modeling", "--batch-size", "1"]
    else:
        command += ["--task", "language_modeling", "--sample-break-mode", "none", "--batch-size", "8"]
        command += ["--context-window", str(context)]
    if overrides:
        command += ["--model-overrides", json.dumps(dict(overrides))]
    if run.cell.scale != "paper":
        command += ["--cpu"]
    run.command(command, log.name)
    text = log.read_text(encoding="utf-8")
    bits, tokens = re.findall(r"Loss \(base 2\): ([\d.]+)", text), re.findall(r"Evaluated ([\d,]+) tokens", text)
    if not bits or not tokens:
        raise ValueError(f"{log}: fairseq-eval-lm gave no loss")
    count = int(tokens[-1].replace(",", ""))
    subwords_found, words = counts(data / "text" / f"{subset}.txt")
    if count != subwords_found:
        raise ValueError(f"{log}: {count} tokens were evaluated, the text has {subwords_found}")
    return 2 ** (float(bits[-1]) * count / words)


def every_so_often(folder: Path) -> list[Path]:
    """The checkpoints of `--save-interval-updates` that were kept, in the order of their updates."""
    return sorted(folder.glob("checkpoint_[0-9]*_[0-9]*.pt"), key=lambda path: int(path.stem.rpartition("_")[2]))


def counts(path: Path) -> tuple[int, int]:
    """Tokens and words of a text in subwords, an end of line among both."""
    tokens = words = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        pieces = line.split()
        tokens += len(pieces) + 1
        words += sum(not piece.endswith("@@") for piece in pieces) + 1
    return tokens, words


def describe(setting: Setting, scale: str) -> str:
    """The line of a record about its data."""
    if scale == "paper":
        return "WikiText-103, blocks of 512 words"
    if scale == "smoke":
        return f"{setting.train_lines} made-up sentences"
    return (
        f"Brown corpus (no part of the published comparison), {setting.train_lines} training sentences, "
        f"{setting.subwords} subwords of them, {setting.epochs} epochs; WikiText-2's test text, lowercased"
    )


def prepare_text(run: Run, setting: Setting) -> Path:
    """codes, text/ and bin/ of a scale.  Raises ValueError where --from DIR is needed and not given."""
    scale = run.cell.scale
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
            texts = corpora.read_lines("wikitext103", sources[0])
        else:
            texts = brown(sources) if scale == "small" else made_up(setting.train_lines)
            subwords.learn_bpe(texts["train"], folder / "codes", setting.subwords)
            apply = subwords.load_bpe(folder / "codes")
            texts = {split: [apply(line) for line in lines] for split, lines in texts.items()}
        binarise(run, folder, texts)

    return run.prepared(f"running-text-{scale}-{setting.train_lines}-{setting.subwords}", make)


def brown(sources: Sequence[Path | None]) -> dict[str, list[str]]:
    """Brown, lowercased, numbers as N; test1 is WikiText-2's test text, where it is at hand."""
    options = corpora.DEFAULTS["brown"]
    texts = {split: list(corpora.clean(lines, options)) for split, lines in
             corpora.read_lines("brown", sources[0]).items()}
    path = None if sources[1] is None else sources[1] / "wiki.test.raw"
    if path is not None and path.is_file():
        words = (" ".join(line.split()) for line in path.read_text(encoding="utf-8").split("\n"))
        texts["test1"] = [line for line in corpora.clean(words, options) if line]
    return texts


def binarise(run: Run, folder: Path, texts: Mapping[str, Iterable[str]]) -> None:
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
