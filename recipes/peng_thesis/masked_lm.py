"""RoBERTa with its attention swapped, masked language modeling continued, then GLUE (Peng 2022, Table 5.6).

Scale paper: --from DIR holds roberta.base/model.pt as fairseq publishes it, text/, text of one's own binarised with its
dictionary (the thesis: BookCorpus, Wikipedia, OpenWebText, RealNews), and mnli/, qnli/, qqp/ and sst-2/ as made by
data-prep/glue.sh.  50,000 updates of 128 blocks of 512 tokens (the peak rate, 1e-4, is ours; the rest is RoBERTa's),
then fine-tuning with the hyperparameters that Liu et al. (2019) give for each task.
The rows of table 5.6-stand-in, at scales small and smoke: a RoBERTa of two layers, trained by fairseq's own `roberta`
on the Brown corpus (made-up sentences), is continued with each attention on the same text, then fine-tuned on SST's
binary sentences.  Texts are short, so memories are of 16 and 32 slots.  One row more is not continued at all: the
thesis says that all such models failed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import text_classification

from seqstruct.data import corpora, subwords
from seqstruct.data.binarise import preprocess
from seqstruct.data.files import atomic_write
from seqstruct.data.text_classification.folder import Request, read_raw
from seqstruct.harness.command import main
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.process import fairseq, run_command
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run, mend_last_checkpoint, slug

TASKS = {  # classes, updates and warm-up of fine-tuning (Liu et al. 2019)
    "MNLI": (3, 123873, 7432), "QNLI": (2, 33112, 1986), "QQP": (2, 113272, 28318), "SST-2": (2, 20935, 1256),
}  # fmt: skip
PLANS = {"BASE": "softmax", "Linformer": "linformer(slots={}, length={})", "ABC-MLP": "abc_mlp(slots={})"}
NOT_CONTINUED = ", not continued"
PUBLISHED = tuple(f"{task} {model}" for task in TASKS for model in
                  ("BASE", "Linformer 64", "Linformer 128", "ABC-MLP 64", "ABC-MLP 128"))  # fmt: skip
SMALL = ("BASE", "Linformer 16", "Linformer 32", "ABC-MLP 16", "ABC-MLP 32", f"ABC-MLP 32{NOT_CONTINUED}")


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    lines, subwords: of the text.  sizes: layers, size, inner size, heads.  block: tokens.  blocks: in a batch.
    updates: of pretraining and of continuing.  epochs, tuning_updates: of fine-tuning, at most.
    """

    lines: int
    subwords: int
    sizes: tuple[int, int, int, int]
    block: int
    blocks: int
    updates: tuple[int, int]
    rate: float
    epochs: int
    tuning_updates: int
    tuning_rate: float


SETTINGS = {
    "smoke": Setting(200, 60, (1, 16, 32, 2), 32, 4, (20, 10), 0.01, 3, 30, 0.01),
    "small": Setting(12000, 4000, (2, 128, 256, 4), 128, 16, (700, 250), 0.001, 5, 1080, 0.0005),
    "paper": Setting(0, 0, (12, 768, 3072, 12), 512, 128, (0, 50_000), 1e-4, 10, 0, 1e-5),
}


def model_of(row: str) -> str:
    """The row without its task."""
    return row.partition(" ")[2] if row.split(" ")[0] in TASKS else row


def plan(row: str, setting: Setting) -> str:
    """Attention of all layers; a text may be as long as a block."""
    kind, _, slots = model_of(row).removesuffix(NOT_CONTINUED).partition(" ")
    return PLANS[kind].format(slots, setting.block)


def model_options(setting: Setting) -> list[str]:
    """Sizes, of both architectures."""
    names = ("layers", "embed-dim", "ffn-embed-dim", "attention-heads")
    sizes = [word for name, size in zip(names, setting.sizes, strict=True) for word in (f"--encoder-{name}", str(size))]
    return [*sizes, "--max-positions", str(setting.block)]


def masked_options(setting: Setting, updates: int) -> list[str]:
    """fairseq-train's options of masked language modeling; model, data and seed apart."""
    return [
        "--task", "masked_lm", "--criterion", "masked_lm", "--sample-break-mode", "none",
        "--tokens-per-sample", str(setting.block), *model_options(setting), "--dropout", "0.1",
        "--attention-dropout", "0.1", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--adam-eps", "1e-6",
        "--weight-decay", "0.01", "--lr", f"{setting.rate:g}", "--lr-scheduler", "polynomial_decay",
        "--warmup-updates", str(updates // 16), "--total-num-update", str(updates), "--max-update", str(updates),
        "--batch-size", str(setting.blocks),
    ]  # fmt: skip


def tuning_options(row: str, scale: str) -> list[str]:
    """fairseq-train's options of fine-tuning; the checkpoint to start from, data and seed apart."""
    setting = SETTINGS[scale]
    classes, updates, warm_up = TASKS[row.split(" ")[0]] if scale == "paper" else (2, setting.tuning_updates, 0)
    warm_up = warm_up or updates // 16
    return [
        "--task", "sentence_prediction", "--criterion", "sentence_prediction", "--num-classes", str(classes),
        "--init-token", "0", "--separator-token", "2", "--arch", "structured_roberta",
        "--encoder-self-attention", plan(row, setting), *model_options(setting), "--shorten-method", "truncate",
        "--dropout", "0.1", "--attention-dropout", "0.1", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)",
        "--adam-eps", "1e-6", "--weight-decay", "0.1", "--lr", f"{setting.tuning_rate:g}", "--lr-scheduler",
        "polynomial_decay", "--warmup-updates", str(warm_up), "--total-num-update", str(updates), "--batch-size", "32",
        "--required-batch-size-multiple", "1", "--best-checkpoint-metric", "accuracy",
        "--maximize-best-checkpoint-metric",
    ]  # fmt: skip


def task_folder(cell: Cell, data: Path) -> Path:
    """The labelled sentences of a row."""
    return data / (cell.row.split(" ")[0].lower() if cell.scale == "paper" else "task")


class MaskedLanguageModels(Recipe):
    """Validation accuracy after fine-tuning; masked perplexity after continuing."""

    paper = "peng_thesis"
    table = "5.6"
    stand_in = "5.6-stand-in"
    family = "efficient attention classifiers"
    rows = (*SMALL, *PUBLISHED)
    smoke_rows = ("ABC-MLP 16",)
    licence = "Brown, SST, GLUE: non-commercial, for research; smoke: none needed, the sentences are made up"
    progress_metric = "accuracy"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """The published rows at scale paper, the stand-ins at the others."""
        rows = PUBLISHED if scale == "paper" else SMALL
        return [cell for cell in super().cells(scale, seeds) if cell.row in rows]

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {f"{task} majority": f"{task} BASE" for task in TASKS} if scale == "paper" else {"majority": "BASE"}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        return super().baseline(run, task_folder(run.cell, data), row)

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        setting = SETTINGS[cell.scale]
        return {**asdict(setting), "masked_options": [masked_options(setting, n) for n in setting.updates],
                "tuning_options": tuning_options(cell.row, cell.scale)}  # fmt: skip

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        if cell.scale == "paper":
            return f"text of one's own, 50,000 updates; GLUE, {cell.row.split(' ')[0]}"
        text = f"the first {setting.lines} sentences of Brown; SST" if cell.scale == "small" else "made-up sentences"
        return (f"{text}; {setting.sizes[0]} layers of size {setting.sizes[1]}, {setting.updates[0]} updates, then "
                f"{setting.updates[1]} with this attention (no part of the published comparison)")  # fmt: skip

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.6, "small": 7.0, "paper": 60.0 * 24 * 2}[cell.scale]
        return Estimate(minutes, disk={"smoke": 3.0, "small": 80.0, "paper": 12000.0}[cell.scale])

    def prepare(self, run: Run) -> Path:
        setting, scale = SETTINGS[run.cell.scale], run.cell.scale
        if run.cell.row not in (PUBLISHED if scale == "paper" else SMALL):
            raise ValueError(f"row {run.cell.row}: not at scale {scale}")
        if scale == "paper":
            return self._published(run)
        sources = [run.raw_data("nltk"), run.raw_data("text-classification")]
        if scale == "small" and None in sources:
            raise ValueError("--from DIR is a folder with brown.zip and SST's stsa.binary.*; nothing is downloaded")

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell}: preparing the text")
            if scale == "smoke":
                text_classification.write_made_up(folder / "raw")
                sources[1] = folder / "raw"
            sentences = read_raw(Request("sst", checked=scale != "smoke"), sources[1])
            texts = {split: [" ".join(s.words) for s in found] for split, found in sentences.items()}
            if scale == "small":
                read = corpora.read_lines("brown", sources[0])
                texts = {split: list(corpora.clean(read[split], corpora.DEFAULTS["brown"])) for split in read}
                texts["train"] = texts["train"][: setting.lines]
            write_data(folder, texts, sentences, setting.subwords)

        return run.prepared(f"masked-lm-{scale}-{setting.lines}-{setting.subwords}", make)

    def train(self, run: Run, data: Path) -> Path:
        setting = SETTINGS[run.cell.scale]
        options = tuning_options(run.cell.row, run.cell.scale)
        task = task_folder(run.cell, data)
        start = self.continued(run, data)
        return run.fairseq_train(task, [*options, "--finetune-from-model", str(start)], epochs=setting.epochs)

    def continued(self, run: Run, data: Path) -> Path:
        """The checkpoint to fine-tune: pretrained, its attention swapped, trained on unless the row says not."""
        setting = SETTINGS[run.cell.scale]
        text = data / ("text" if run.cell.scale == "paper" else "mlm")
        start = data / "roberta.base" / "model.pt"
        if run.cell.scale != "paper":
            start = stage(run, "pretrained", text, ["--arch", "roberta", *masked_options(setting, setting.updates[0])])
        if run.cell.row.endswith(NOT_CONTINUED):
            return start
        attention = ["--arch", "structured_roberta", "--encoder-self-attention", plan(run.cell.row, setting)]
        options = [*attention, *masked_options(setting, setting.updates[1]), "--finetune-from-model", str(start)]
        return stage(run, f"continued-{model_of(run.cell.row)}", text, options)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        accuracies = _statistics(run.folder / "train.log", "valid_accuracy")
        found = [Measurement("validation_accuracy", max(accuracies), "%")]
        if not run.cell.row.endswith(NOT_CONTINUED):
            log = self.continued(run, data).parent / "train.log"
            masked = _statistics(log, "valid_ppl")[-1]
            found.append(Measurement("masked_perplexity", masked, "perplexity"))
        return [*found, Measurement("parameters", run.parameters, "parameters")]

    @staticmethod
    def _published(run: Run) -> Path:
        wanted = ("roberta.base/model.pt", "text/dict.txt", f"{run.cell.row.split(' ')[0].lower()}/input0/dict.txt")
        missing = [name for name in wanted if run.source is None or not (run.source / name).is_file()]
        if missing:
            raise ValueError(f"row {run.cell.row}: --from DIR has no {missing[0]}; it holds roberta.base/, text/ and "
                             "the folders of data-prep/glue.sh")  # fmt: skip
        return run.source


def stage(run: Run, name: str, data: Path, options: Sequence[str]) -> Path:
    """Train once for all rows that need it; the last checkpoint comes back.  An interrupted training goes on."""
    options = [*options, "--seed", str(run.cell.seed)]
    digest = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:8]
    folder = run.root / "stages" / slug(f"{name}-{run.cell.scale}-{digest}")
    done = folder / "done"
    if not done.exists():
        run.progress.say(f"{run.cell}: {name}")
        folder.mkdir(parents=True, exist_ok=True)
        mend_last_checkpoint(folder)
        words = [*fairseq("train"), data, "--user-dir", PLUGIN, *options, "--save-dir", folder,
                 "--no-epoch-checkpoints", "--update-epoch-batch-itr", "True", "--log-format", "json",
                 *(["--cpu", "--num-workers", "0"] if run.cell.scale != "paper" else [])]  # fmt: skip
        run_command(words, folder / "train.log", threads=run.threads)
        done.touch()
    return folder / "checkpoint_last.pt"


def _statistics(log: Path, name: str) -> list[float]:
    """A statistic of each validation.  Raises ValueError if there was none."""
    entries = parse_lines(log.read_text(encoding="utf-8").splitlines())
    found = [entry.statistics[name] for entry in entries if name in entry.statistics]
    if not found:
        raise ValueError(f"{log}: expected {name} of validations, found none")
    return found


def write_data(folder: Path, texts: Mapping[str, Sequence[str]], sentences: Mapping[str, Any], types: int) -> None:
    """mlm/, the text; task/input0 and task/label, the labelled sentences in the text's subwords; codes."""
    subwords.learn_bpe(texts["train"], folder / "codes", types)
    apply = subwords.load_bpe(folder / "codes")
    parts = {"mlm": texts, "input0": {split: [" ".join(s.words) for s in found] for split, found in sentences.items()},
             "label": {split: [s.label for s in found] for split, found in sentences.items()}}  # fmt: skip
    for part, splits in parts.items():
        for split in ("train", "valid"):
            with atomic_write(folder / "lines" / f"{split}.{part}") as stream:
                stream.writelines(f"{line if part == 'label' else apply(line)}\n" for line in splits[split])
    with atomic_write(folder / "lines" / "labels") as stream:
        stream.write("0 1\n1 1\n")
    places = {"mlm": folder / "mlm", "input0": folder / "task" / "input0", "label": folder / "task" / "label"}
    dictionaries = {"input0": folder / "mlm" / "dict.txt", "label": folder / "lines" / "labels"}
    for part, place in places.items():
        given = ["--srcdict", dictionaries[part]] if part in dictionaries else []
        lines = folder / "lines"
        preprocess(place, ["--only-source", "--workers", "1", "--trainpref", lines / f"train.{part}",
                           "--validpref", lines / f"valid.{part}", *given])  # fmt: skip


recipe = MaskedLanguageModels()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
