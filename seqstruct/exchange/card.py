"""The model card of an exported run, written from the run: what it was trained on, how, and how well it does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import seqstruct
from seqstruct.data.text.pipeline import TextPipeline
from seqstruct.hf import SeqstructConfig

TAGS = {"structured_transformer": "translation", "structured_transformer_lm": "text-generation",
        "structured_transformer_classifier": "text-classification"}
AUTO = {"structured_transformer": "AutoModelForSeq2SeqLM", "structured_transformer_lm": "AutoModelForCausalLM",
        "structured_transformer_classifier": "AutoModelForSequenceClassification"}
SECTIONS = ("task", "model", "criterion", "optimizer", "lr_scheduler", "optimization", "dataset")
PRIVATE = (  # places on the machine of training
    "data", "encoder_embed_path", "decoder_embed_path", "training_text", "source_subword_model",
    "target_subword_model", "documents",
)
GENERATED = {
    "structured_transformer": """found = model.generate(**tokenizer(["..."], return_tensors="pt", padding=True))
print(tokenizer.batch_decode(found, skip_special_tokens=True))""",
    "structured_transformer_lm": """found = model.generate(**tokenizer(["..."], return_tensors="pt"), max_new_tokens=20)
print(tokenizer.batch_decode(found, skip_special_tokens=True))""",
    "structured_transformer_classifier": """label = model(**tokenizer(["..."], return_tensors="pt")).logits.argmax(1)
print(model.config.id2label[int(label)])""",
}
OF_PAIRS = """first, second = (tokenizer([text], return_tensors="pt") for text in ("...", "..."))
logits = model(**first, **{f"second_{name}": value for name, value in second.items()}).logits
print(model.config.id2label[int(logits.argmax(1))])"""


@dataclass(frozen=True)
class ExportedRun:
    """What a card tells of a run.  configuration: the checkpoint's, by section.  pipelines: of source and target.
    scores: texts that commands printed, by file.  licence: of the data.  updates: how many were made.
    difference: of logits, between fairseq's model and this one.  shipped: whether the code is in the folder.
    """

    name: str
    config: SeqstructConfig
    configuration: Mapping[str, Any]
    pipelines: Sequence[TextPipeline]
    scores: Mapping[str, str]
    licence: str
    updates: int | None
    difference: float
    shipped: bool


def card(run: ExportedRun) -> str:
    """The text of README.md."""
    config, path = run.config, run.pipelines[0].description
    described = {} if path is None else json.loads(path.read_text(encoding="utf-8"))
    licence = run.licence or str(described.get("licence") or "not stated")
    parts = [
        f"---\nlibrary_name: transformers\npipeline_tag: {TAGS[config.arch]}\ntags: [seqstruct]\n---\n",
        f"# {run.name}\n",
        f"`{config.arch}` of seqstruct {seqstruct.__version__}, trained by fairseq and exported for transformers.\n",
        _use(run), _plan(config), _data(described, run.pipelines, licence), _training(run), _scores(run.scores),
        _limits(run),
    ]
    return "\n".join(parts)


def _use(run: ExportedRun) -> str:
    trust, first = (", trust_remote_code=True", "") if run.shipped else ("", "import seqstruct.hf\n")
    auto = AUTO[run.config.arch]
    where = "seqstruct need not be installed." if run.shipped else (
        "seqstruct has to be installed (and the package of each mechanism that is not its own).")
    return f"""## Use

{where}

```python
{first}from transformers import AutoTokenizer, {auto}

tokenizer = AutoTokenizer.from_pretrained("FOLDER"{trust})
model = {auto}.from_pretrained("FOLDER"{trust}).eval()
{OF_PAIRS if run.config.pairs else GENERATED[run.config.arch]}
```
"""


def _plan(config: SeqstructConfig) -> str:
    rows = [f"| {site.value} | `{getattr(config, f'{site.value}_attention')}` |" for site in config.sites]
    return "## Attention\n\n| Site | Plan, from the lowest layer up |\n| --- | --- |\n" + "\n".join(rows) + "\n"


def _data(described: Mapping[str, Any], pipelines: Sequence[TextPipeline], licence: str) -> str:
    sums = {**(described.get("sha256") or {}), **(described.get("checksums") or {})}
    cut = [f"{p.subwords or 'words'}" + (f" of {p.words} words" if p.words else "") + (" in lower case" * p.lowercase)
           for p in pipelines]
    named = f"Corpus: {described['corpus']}.\n" if "corpus" in described else ""
    lines = [f"- `{name}`: SHA-256 {value}" for name, value in sums.items() if isinstance(value, str)]
    checksums = "\n".join(lines) or "No checksums: the prepared folder is not known, or says none."
    return (f"## Data\n\n{named}Licence of the data: {licence}.\nText is cut into {' and '.join(dict.fromkeys(cut))}.\n"
            f"\n{checksums}\n")


def _training(run: ExportedRun) -> str:
    found = {name: run.configuration.get(name) for name in SECTIONS}
    sections = {
        name: {key: value for key, value in section.items()
               if key not in PRIVATE and value is not None and value is not False and value != ""}
        for name, section in found.items() if isinstance(section, Mapping)
    }
    seed = (run.configuration.get("common") or {}).get("seed")
    made = (f"{run.updates:,} updates. " if run.updates else "") + (f"Seed {seed}. " if seed is not None else "")
    rows = "\n".join(f"{name}: {json.dumps(values, default=str)}" for name, values in sections.items() if values)
    words = " ".join(f"--{key.replace('_', '-')} {json.dumps(run.configuration['model'][key])}" for key in (
        "encoder_self_attention", "decoder_self_attention", "cross_attention") if run.configuration["model"].get(key))
    return (f"## Training\n\n{made}The command was of this form, with the options below by their names:\n\n```\n"
            f"fairseq-train DATA --user-dir seqstruct --task {run.configuration['task'].get('_name')} --arch "
            f"{run.config.arch} {words}\n```\n\n```\n{rows}\n```\n")


def _scores(scores: Mapping[str, str]) -> str:
    if not scores:
        return "## Scores\n\nNone was given to the export; `seqstruct score` prints them with their signatures.\n"
    return "## Scores\n\n" + "\n".join(f"`{name}`\n\n```\n{text.strip()}\n```\n" for name, text in scores.items())


def _limits(run: ExportedRun) -> str:
    config = run.config
    longest = [f"{config.max_target_positions} tokens"]
    if config.arch != "structured_transformer_lm":
        longest = [f"{config.longest_source} tokens of the source"]
        longest += [f"{config.max_target_positions} of the target"] if config.is_encoder_decoder else []
    dtype = str(config.dtype or "float32").removeprefix("torch.")
    limits = [
        f"Texts of at most {' and '.join(longest)}.",
        f"Logits differ from those of fairseq by {run.difference:.1e} at most on random tokens, in {dtype}.",
    ]
    if config.is_encoder_decoder:
        limits.append("Beam search finds what fairseq-generate finds with the same beam and greatest length, but where "
                      "two scores are equal up to rounding.")
    limits.append("A memory of attention is not put back to an earlier token: no assisted generation.")
    return "## Limits\n\n" + "\n".join(f"- {limit}" for limit in limits) + "\n"
