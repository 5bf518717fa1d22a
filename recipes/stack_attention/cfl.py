"""Context-free languages (Stack Attention, section 6 and appendix D): transformers and LSTMs, alone, with a
superposition stack and with a nondeterministic stack, on five languages.

Scale paper is the published setting.  Scale small keeps the languages, models, batches and optimizer, and takes
shorter strings, fewer epochs and one learning rate for each model, the best of pilot.py's three, so that a cell takes
minutes on one thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from seqstruct.data.cfl.folder import Request, write_folder
from seqstruct.harness.command import main
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.process import fairseq
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import PLUGIN, Run
from seqstruct.harness.search import SearchSpace, draw

UNIT = "nats per symbol"
STATES = {"marked-reversal": 2, "unmarked-reversal": 2, "padded-reversal": 3, "dyck": 2, "hardest-cfl": 3}
PLANS = {
    "Tf": "softmax",
    "Tf+Sup": "softmax*2 + superposition_stack(size=32) + softmax*2",
    "Tf+Nd": "softmax*2 + nondeterministic_stack(states={states}, symbols=3, size=5) + softmax*2",
}
PUBLISHED_SCHEDULE = (
    "--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.9", "--lr-patience", "5", "--patience", "10",
)  # fmt: skip
EMBED_DIM = {"Tf": 32, "Tf+Sup": 32, "Tf+Nd": 28}
STACKS = {
    "LSTM": "none",
    "LSTM+Sup": "superposition_stack(size=10, sigmoid=True)",
    "LSTM+Nd": "nondeterministic_stack(states={states}, symbols=3, size=5, sigmoid=True)",
}
HIDDEN_SIZE = {"LSTM": 100, "LSTM+Sup": 93, "LSTM+Nd": 64}
MODELS = (*PLANS, *STACKS)


@dataclass(frozen=True)
class Setting:
    """What a scale chooses.

    train, valid: number of strings.  test_per_length: test strings of each valid length.  lengths, test_lengths:
    shortest and longest string.  epochs: at most.  learning_rate: low and high end of a log-uniform draw for each seed.
    """

    train: int
    valid: int
    test_per_length: int
    lengths: tuple[int, int]
    test_lengths: tuple[int, int]
    epochs: int
    learning_rate: tuple[float, float]


# the ends of the published draw are those of the released code
PUBLISHED_LEARNING_RATE = (0.0005, 0.01)
SETTINGS = {
    "smoke": Setting(200, 50, 2, (5, 20), (5, 30), 2, (0.004, 0.004)),
    "small": Setting(10000, 1000, 50, (10, 40), (10, 60), 24, PUBLISHED_LEARNING_RATE),
    "paper": Setting(10000, 1000, 100, (40, 80), (40, 100), 200, PUBLISHED_LEARNING_RATE),
}
# of the three in pilot.py the one that ended lowest, for each model; a test holds them against the pilot's records
PILOT_LEARNING_RATE = {
    "Tf": 0.0025, "Tf+Sup": 0.001, "Tf+Nd": 0.006, "LSTM": 0.006, "LSTM+Sup": 0.006, "LSTM+Nd": 0.006,
}  # fmt: skip


def model_options(language: str, model: str) -> list[str]:
    """fairseq-train's options for the model; the number of states depends on the language."""
    states = STATES[language]
    if model in STACKS:
        stack = STACKS[model].format(states=states)
        return ["--arch", "stack_lstm_lm", "--hidden-size", str(HIDDEN_SIZE[model]), "--stack", stack]
    return [
        "--arch", "structured_transformer_lm_cfl", "--decoder-embed-dim", str(EMBED_DIM[model]),
        "--decoder-self-attention", PLANS[model].format(states=states),
    ]  # fmt: skip


def train_options(language: str, model: str) -> list[str]:
    """fairseq-train's options for the recipe of appendix D; data, seed, epochs and learning rate apart."""
    return [
        "--task", "cfl_language_modeling", "--criterion", "cfl_cross_entropy",
        *model_options(language, model),
        "--optimizer", "adam", "--clip-norm", "5", "--batch-size", "10", "--best-checkpoint-metric", "perplexity",
    ]  # fmt: skip


class ContextFreeLanguages(Recipe):
    """Cross-entropy above the true distribution, on validation strings and on test strings of longer lengths too."""

    paper = "stack_attention"
    table = "figure-2"
    family = "stack attention language models"
    rows = tuple(f"{language} {model}" for language in STATES for model in MODELS)
    smoke_rows = ("dyck Tf+Nd",)
    seeds = {"smoke": 1, "small": 1, "paper": 10}
    licence = "none needed, the strings are sampled"
    progress_metric = "difference"

    def language_and_model(self, cell: Cell) -> tuple[str, str]:
        """The two names of a row."""
        language, model = cell.row.split()
        return language, model

    def setting(self, cell: Cell) -> Setting:
        """What the cell's scale chooses; at small the learning rate is the pilot's."""
        setting = SETTINGS[cell.scale]
        if cell.scale != "small":
            return setting
        return replace(setting, learning_rate=(PILOT_LEARNING_RATE[self.language_and_model(cell)[1]],) * 2)

    def schedule(self, cell: Cell) -> Sequence[str]:
        """fairseq-train's options for the learning rate after its start, and for stopping."""
        return PUBLISHED_SCHEDULE

    def baselines(self, scale: str) -> Mapping[str, str]:
        languages = dict.fromkeys(row.split()[0] for row in (self.smoke_rows if scale == "smoke" else self.rows))
        return {f"{language} 5-gram": f"{language} Tf" for language in languages}

    def draws(self, cell: Cell) -> Mapping[str, float]:
        return draw(SearchSpace(self.setting(cell).learning_rate), cell.seed)

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        language, model = self.language_and_model(cell)
        options = [*train_options(language, model), *self.schedule(cell)]
        return {**asdict(self.setting(cell)), "train_options": options}

    def dataset(self, cell: Cell) -> str:
        s = self.setting(cell)
        language, _ = self.language_and_model(cell)
        text = (
            f"{language}, {s.train} strings of length {s.lengths[0]} to {s.lengths[1]}, test to {s.test_lengths[1]}, "
            f"at most {s.epochs} epochs"
        )
        if cell.scale != "paper":
            low, high = s.learning_rate
            text += f", learning rate {low:g}" + (f" to {high:g}" if high > low else "")
            text += " (published: 10000 of length 40 to 80, test to 100, 200 epochs, learning rate drawn for each run)"
        return text

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.4, "small": 8.0, "paper": 120.0}[cell.scale]
        factor = {"Tf+Nd": 1.9, "LSTM": 0.4, "LSTM+Nd": 3.0}.get(self.language_and_model(cell)[1], 1.0)
        return Estimate(minutes=minutes * factor, disk=10.0)

    def prepare(self, run: Run) -> Path:
        language, _ = self.language_and_model(run.cell)
        setting = self.setting(run.cell)
        request = Request(
            language, train=setting.train, valid=setting.valid, test_per_length=setting.test_per_length,
            lengths=setting.lengths, test_lengths=setting.test_lengths, seed=run.cell.seed,
        )  # fmt: skip
        low, high = setting.lengths
        name = f"{language}-{setting.train}-{low}-{high}-test-{setting.test_lengths[1]}-seed{run.cell.seed}"
        return run.prepared(name, lambda folder: write_folder(request, folder))

    def train(self, run: Run, data: Path) -> Path:
        language, model = self.language_and_model(run.cell)
        setting = self.setting(run.cell)
        learning_rate = self.draws(run.cell)["learning_rate"]
        options = [*train_options(language, model), *self.schedule(run.cell), "--lr", f"{learning_rate:.8g}"]
        return run.fairseq_train(data, options, epochs=setting.epochs)

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        differences = cross_entropy_differences(run, data, checkpoint)
        return [
            Measurement("validation_cross_entropy_difference", *differences["valid"]),
            Measurement("test_cross_entropy_difference", *differences["test"]),
            Measurement("parameters", run.parameters, "parameters", table="5"),
        ]


def cross_entropy_differences(
    run: Run, data: Path, checkpoint: Path
) -> dict[str, tuple[float, str, str, list[tuple[float, float]]]]:
    """Value, unit, axis and points (length, value) of the validation and the test set, by fairseq-validate."""
    log = run.folder / "validate.log"
    log.unlink(missing_ok=True)
    run.command(
        [*fairseq("validate"), data, "--user-dir", PLUGIN, "--task", "cfl_language_modeling", "--criterion",
         "cfl_cross_entropy", "--report-by-length", "--path", checkpoint, "--valid-subset", "valid,test",
         "--batch-size", "100", "--log-format", "json", "--cpu", "--num-workers", "0"],
        log.name,
    )  # fmt: skip
    found = {}
    for entry in parse_lines(log.read_text(encoding="utf-8").splitlines()):
        whole = f"{entry.tag}_difference"
        if whole in entry.statistics:
            by_length = {
                int(name[len(whole) + 1 :]): value
                for name, value in entry.statistics.items()
                if name.startswith(f"{whole}_")
            }
            found[entry.tag] = (entry.statistics[whole], UNIT, "string length", sorted(by_length.items()))
    return found


recipe = ContextFreeLanguages()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
