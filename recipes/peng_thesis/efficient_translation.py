"""Translation with attention of linear cost in the decoder (Peng 2022, Tables 4.4, 5.5a, 5.7, 5.9, A.1 and A.4).

At scale paper base-sized models on WMT14 and IWSLT14: --from DIR is a folder that data-prep/wmt14.sh or iwslt14.sh (by
the thesis's recipe) made, that of the row.  The last ten checkpoints are averaged (five in chapter 5; each 1,000
updates); Tables 5.9, A.1 and A.4 decode the best checkpoint greedily and score the validation set.  Deviations:
beta_1 of Adam is 0.9, where the thesis prints 0.1; WMT14's batches are counted in tokens of one GPU times
--update-freq; the window row keeps softmax across, since a window has no meaning there.
The rows of table 4.4-stand-in are on Multi30k, German to English, at scales small and smoke: 3 + 3 layers of size 128,
few epochs, features and slots as in the thesis; "NoFloor" has denominators as in the equations, the other rows of RFA
hold them at 1, as the released code.  Decoding speed: greedy, batches of 32, as many steps for all models, against
softmax in the same model; the better of two decodings each.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.bridge.averaging import average_checkpoints
from seqstruct.harness.baselines import measure
from seqstruct.harness.command import main
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run
from seqstruct.harness.translate import corpus_scores, generate, tokens_per_second, validation_perplexity

MULTI30K = load_recipe(Path(__file__).resolve().parents[1] / "multi30k" / "multi30k.py")
compact = sys.modules[type(MULTI30K).__module__].compact
CORPORA = {"WMT14 en-de": ("en", "de"), "WMT14 en-fr": ("en", "fr"), "IWSLT14 de-en": ("de", "en")}
SOFTMAX = ("softmax", "softmax", "softmax")
# plans of encoder, decoder and cross attention; D, half of the Gaussian features, is 128 across and 64 causal
FEATURES = {
    "BASE": SOFTMAX,
    "phi-elu": ("softmax", "linear", "linear"),
    "RFA-Gaussian": ("softmax", "rfa(features=128)", "rfa(features=256)"),
    "RFA-arccos": ("softmax", "rfa(features=64, kernel='arccos')", "rfa(features=128, kernel='arccos')"),
    "RFA-GATE-Gaussian": ("softmax", "rfa(features=128, gate=True)", "rfa(features=256)"),
    "RFA-GATE-arccos": (
        "softmax", "rfa(features=64, kernel='arccos', gate=True)", "rfa(features=128, kernel='arccos')",
    ),
}  # fmt: skip
BOUNDED = {  # row without sizes: mechanism and its options
    "ABC-RD": "abc_random(slots={})",
    "ABC-MLP": "abc_mlp(slots={})",
    "Linformer": "linformer(slots={})",
    "Cluster": "clustering(slots={}, allow_short=True)",
    "MLP-ReLU": "abc_mlp(slots={}, activation='relu')",
    "MLP-sigmoid": "abc_mlp(slots={}, activation='sigmoid')",
    "MLP-exp": "abc_mlp(slots={})",
}
NORMALIZED = ("softmax", "normalized_softmax", "normalized_softmax")  # NS-attn: Table 4.6's, trained by its recipe
TABLE_4_4 = {f"{corpus} {model}": plans for corpus in CORPORA for model, plans in FEATURES.items()}
TABLE_5_5A = ("ABC-RD 32-32", "ABC-RD 64-64", "Linformer 32-32", "Linformer 64-64", "ABC-MLP 32-8", "ABC-MLP 32-32")
TABLE_5_7 = ("Window 32-32", "Cluster 32-32", "MLP-ReLU 32-8", "MLP-ReLU 32-32", "MLP-sigmoid 32-8",
             "MLP-sigmoid 32-32", "MLP-exp 32-8", "MLP-exp 32-32", "MLP-exp-all 32-32-32")  # fmt: skip
TABLE_5_9 = {
    f"cross {cross}, causal {causal}": ("softmax", f"abc_mlp(slots={causal})", f"abc_mlp(slots={cross})")
    for causal, crosses in ((8, (8, 16, 32, 64)), (16, (16, 32, 64)), (32, (32, 64)), (64, (64,)))
    for cross in crosses
}
TABLE_A_1 = {
    f"{count} matrices": ("softmax", f"rfa(features=128, pool={count})", f"rfa(features=256, pool={count})")
    for count in (1, 50, 100, 200)
}
TABLE_A_4 = {
    f"cross {cross}, causal {causal}": ("softmax", f"rfa(features={causal})", f"rfa(features={cross})")
    for cross, causal in ((32, 128), (64, 128), (128, 128), (256, 128), (512, 128), (256, 32), (256, 64), (256, 256),
                          (256, 512))
}  # fmt: skip
GREEDY_TABLES = {"5.9": TABLE_5_9, "A.1": TABLE_A_1, "A.4": TABLE_A_4}
STAND_INS = ("BASE", "phi-elu", "RFA-Gaussian", "RFA-Gaussian-NoFloor", "ABC-MLP 32-8")
NO_FLOOR = ("softmax", "rfa(features=128, floor=0.0)", "rfa(features=256, floor=0.0)")
SMALL = {**FEATURES, "RFA-Gaussian-NoFloor": NO_FLOOR, "NS-attn": NORMALIZED}


@dataclass(frozen=True)
class Setting:
    """What a scale chooses, scale paper's sizes apart.

    embed_dim, ffn_embed_dim: of 3 + 3 layers.  updates: of the schedule.  save_every: updates between the checkpoints
    of which the last `averaged` are averaged.  steps: of each decoding that is timed.
    """

    embed_dim: int
    ffn_embed_dim: int
    epochs: int
    updates: int
    learning_rate: float
    max_tokens: int
    save_every: int
    averaged: int
    steps: int


SETTINGS = {
    "smoke": Setting(32, 64, 4, 40, 0.005, 500, 10, 2, 8),
    "small": Setting(128, 256, 4, 2280, 0.004, 1000, 300, 3, 64),
    "paper": Setting(512, 2048, 1000, 350_000, 0.0, 0, 1000, 10, 64),
}


def tables(row: str, scale: str) -> tuple[str, ...]:
    """Where a row's numbers are recorded."""
    if scale != "paper":
        return ("4.4-stand-in",)
    greedy = tuple(name for name, rows in GREEDY_TABLES.items() if row in rows)
    named = (("4.4", (*TABLE_4_4, "IWSLT14 de-en NS-attn")), ("5.5a", ("BASE", *TABLE_5_5A)),
             ("5.7", ("BASE", *TABLE_5_7)))  # fmt: skip
    return greedy or tuple(name for name, rows in named if row in rows)


def plans(row: str, scale: str) -> dict[str, str]:
    """The model's options that choose its attention."""
    found: tuple[str, str, str] | None = None
    if scale != "paper":
        found = SMALL.get(row)
    for rows in (TABLE_4_4, *GREEDY_TABLES.values(), {"BASE": SOFTMAX, "IWSLT14 de-en NS-attn": NORMALIZED}):
        found = found or rows.get(row)
    if found is None:
        kind, _, sizes = row.rpartition(" ")
        cross, causal, *encoder = sizes.split("-")
        if kind == "Window":
            found = ("softmax", f"sliding_window(slots={causal})", "softmax")
        else:
            mechanism = BOUNDED[kind.removesuffix("-all")]
            found = (mechanism.format(*encoder) if encoder else "softmax", mechanism.format(causal),
                     mechanism.format(cross))  # fmt: skip
    return dict(zip(("encoder_self_attention", "decoder_self_attention", "cross_attention"), found, strict=True))


def corpus_of(row: str, scale: str) -> str:
    """Which corpus a row is of: a name among `CORPORA`, or Multi30k."""
    if scale != "paper":
        return "Multi30k"
    return next((name for name in CORPORA if row.startswith(name)), "WMT14 en-de")


def languages(row: str, scale: str) -> tuple[str, str]:
    """Source and target."""
    return ("de", "en") if scale != "paper" else CORPORA[corpus_of(row, scale)]


def train_options(row: str, scale: str) -> list[str]:
    """fairseq-train's options; data, seed and epochs apart."""
    setting, corpus = SETTINGS[scale], corpus_of(row, scale)
    source, target = languages(row, scale)
    options = ["--task", "translation", "--source-lang", source, "--target-lang", target]
    if scale != "paper":
        sizes = compact(setting.embed_dim, setting.ffn_embed_dim, setting.updates, setting.learning_rate)
        options += [*sizes, "--max-tokens", str(setting.max_tokens)]
    else:
        options += _published(corpus, setting)
    for name, plan in plans(row, scale).items():
        options += [f"--{name.replace('_', '-')}", plan]
    return [
        *options, "--optimizer", "adam", "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1",
        "--save-interval-updates", str(setting.save_every), "--keep-interval-updates", str(setting.averaged),
    ]  # fmt: skip


def _published(corpus: str, setting: Setting) -> list[str]:
    """Table A.3; the rate of Vaswani et al. (2017), 512^-0.5 warmup^-0.5 at its peak."""
    warm_up, dropout, tying = 6000, "0.1", "--share-all-embeddings"
    batch = ["--max-tokens", "8192", "--update-freq", "4" if corpus == "WMT14 en-de" else "16"]  # 1,024; 4,096 pairs
    if corpus == "IWSLT14 de-en":
        warm_up, dropout, tying = 4000, "0.3", "--share-decoder-input-output-embed"
        batch = ["--max-tokens", "4096"]
    return [
        "--arch", "structured_transformer", tying, "--dropout", dropout, "--adam-betas", "(0.9, 0.98)",
        "--adam-eps", "1e-9", "--lr", f"{(512 * warm_up) ** -0.5:.6g}", "--lr-scheduler", "inverse_sqrt",
        "--warmup-updates", str(warm_up), "--max-update", str(setting.updates), *batch,
        "--eval-bleu", "--eval-bleu-args", '{"beam": 1}', "--eval-bleu-remove-bpe", "--eval-bleu-detok", "moses",
        "--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric", "--patience", "20",
    ]  # fmt: skip


def decode_options(row: str, scale: str, subset: str) -> tuple[str, ...]:
    """fairseq-generate's: beam 4 in chapter 4, 5 in chapter 5, 1 where no beam search is used; length penalty 0.6."""
    beam = "4"
    if scale == "paper":
        found = tables(row, scale)[0]
        beam = "1" if found in GREEDY_TABLES else "5" if found.startswith("5") else "4"
    lengths = ("--max-len-a", "1.5", "--max-len-b", "10")
    return ("--gen-subset", subset, "--beam", beam, "--lenpen", "0.6", *lengths)


class EfficientTranslation(Recipe):
    """SacreBLEU on the raw references; decoding speed in times softmax's."""

    paper = "peng_thesis"
    table = "4.4"
    family = "efficient attention translation"
    rows = tuple(dict.fromkeys((
        *STAND_INS, *TABLE_4_4, *TABLE_5_5A, *TABLE_5_7, *(row for rows in GREEDY_TABLES.values() for row in rows),
    )))  # fmt: skip
    smoke_rows = ("ABC-MLP 32-8",)
    licence = "WMT14, IWSLT14, Multi30k: for research; made-up sentences at the smoke scale: none needed"

    def cells(self, scale: str, seeds: Sequence[int] | None = None) -> list[Cell]:
        """The published rows at scale paper, the stand-ins at the others."""
        return [cell for cell in super().cells(scale, seeds)
                if (tables(cell.row, scale) if scale == "paper" else cell.row in STAND_INS)]

    def baselines(self, scale: str) -> Mapping[str, str]:
        return {f"{corpus} copy": f"{corpus} BASE" for corpus in CORPORA} if scale == "paper" else {"copy": "BASE"}

    def baseline(self, run: Run, data: Path, row: str) -> Sequence[Measurement]:
        languages_of = languages(run.cell.row, run.cell.scale)
        valid, test = measure("copy", data, languages=languages_of, metrics=("bleu",), splits=("valid", "test"))
        if run.cell.scale != "paper":
            return [m._replace(table="4.4-stand-in") for m in (valid, test)]
        more = ("5.5a", "5.7", *GREEDY_TABLES) if row == "WMT14 en-de copy" else ()
        return [test, *((valid if table in GREEDY_TABLES else test)._replace(table=table) for table in more)]

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        options = {"train_options": train_options(cell.row, cell.scale),
                   "decode_options": decode_options(cell.row, cell.scale, "test")}
        return {**asdict(SETTINGS[cell.scale]), **options}

    def dataset(self, cell: Cell) -> str:
        setting = SETTINGS[cell.scale]
        if cell.scale == "paper":
            return f"{corpus_of(cell.row, cell.scale)}, as its script of data-prep makes it"
        pairs = "400 made-up sentence pairs" if cell.scale == "smoke" else "Multi30k de-en task 1, test_2016_flickr"
        return f"{pairs} (no part of the published comparison), 3 + 3 layers, {setting.epochs} epochs"

    def estimate(self, cell: Cell) -> Estimate:
        minutes = {"smoke": 0.5, "small": 8.0, "paper": 60.0 * 24 * 3}[cell.scale]
        disk = {"smoke": 5.0, "small": 120.0, "paper": 9000.0}[cell.scale]
        return Estimate(minutes, disk, download=1.3 if cell.scale == "small" else 0.0)

    def prepare(self, run: Run) -> Path:
        row, scale = run.cell.row, run.cell.scale
        if scale != "paper":
            if row not in SMALL and row not in STAND_INS:
                raise ValueError(f"row {row}: at scale paper alone; the rows of Multi30k are {', '.join(STAND_INS)}")
            return MULTI30K.prepare(run)
        if not tables(row, scale):
            raise ValueError(f"row {row}: at scales small and smoke alone")
        corpus, (source, target) = corpus_of(row, scale), languages(row, scale)
        if run.source is None or not (run.source / "bin" / f"dict.{source}.txt").is_file():
            raise ValueError(f"row {row}: --from DIR is the folder that data-prep made of {corpus} "
                             f"(with bin/dict.{source}.txt)")
        if not (run.source / "raw" / f"test.{target}").is_file():
            raise ValueError(f"row {row}: {run.source / 'raw' / f'test.{target}'}: no such file")
        return run.source

    def train(self, run: Run, data: Path) -> Path:
        return run.fairseq_train(
            data / "bin", train_options(run.cell.row, run.cell.scale), epochs=SETTINGS[run.cell.scale].epochs
        )

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        row, scale = run.cell.row, run.cell.scale
        found = []
        for subset, name in (("valid", "validation"), ("test", "test")):
            greedy = tables(row, scale)[0] in GREEDY_TABLES
            if subset == "test" and greedy:
                continue
            used = checkpoint if greedy or scale != "paper" else averaged(run)
            options = decode_options(row, scale, subset)
            bleu = corpus_scores(run, data, used, languages(row, scale), options, subset)[0].value
            found.append((f"{name}_bleu", bleu, "BLEU"))
        if scale != "paper":
            options = decode_options(row, scale, "test")
            bleu = corpus_scores(run, data, averaged(run), languages(row, scale), options, "averaged")[0].value
            found.append(("averaged_test_bleu", bleu, "BLEU"))
            found.append(("validation_perplexity", validation_perplexity(run), "perplexity"))
        if tables(row, scale)[0].startswith("4.4"):
            own, ratio = decoding_speed(run, data, checkpoint)
            found += [("decoding_speed", ratio, "times BASE"), ("decoding_tokens_per_second", own, "tokens/s")]
        found.append(("parameters", run.parameters, "parameters"))
        return [Measurement(*values, table=table) for table in tables(row, scale) for values in found]


def averaged(run: Run) -> Path:
    """The mean of the run's last checkpoints, in the run's folder."""
    kept = (run.folder / "checkpoints").glob("checkpoint_*_*.pt")
    checkpoints = sorted(kept, key=lambda path: int(path.stem.split("_")[2]))
    if not checkpoints:
        raise ValueError(f"{run.folder / 'checkpoints'}: expected checkpoints to average, found none")
    count = 5 if tables(run.cell.row, run.cell.scale)[0].startswith("5") else SETTINGS[run.cell.scale].averaged
    average_checkpoints(checkpoints[-count:], run.folder / "averaged.pt")
    return run.folder / "averaged.pt"


def decoding_speed(run: Run, data: Path, checkpoint: Path) -> tuple[float, float]:
    """Tokens per second, and times those of the same model with softmax everywhere."""
    steps = str(SETTINGS[run.cell.scale].steps)
    options = ("--gen-subset", "test", "--beam", "1", "--batch-size", "32", "--min-len", steps, "--max-len-a", "0",
               "--max-len-b", steps)  # fmt: skip
    kinds: dict[str, Mapping[str, str] | None] = {"own": None}
    softmax = plans("BASE", run.cell.scale)
    if plans(run.cell.row, run.cell.scale) != softmax:
        kinds["softmax"] = softmax
    best = dict.fromkeys(kinds, 0.0)
    for repetition in range(1 if run.cell.scale == "smoke" else 2):
        for kind, overrides in kinds.items():
            decoded = generate(run, data / "bin", checkpoint, languages(run.cell.row, run.cell.scale), options,
                               f"speed-{kind}-{repetition}", overrides)  # fmt: skip
            best[kind] = max(best[kind], tokens_per_second(decoded))
    return best["own"], best["own"] / best.get("softmax", best["own"])


recipe = EfficientTranslation()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
