"""From a checkpoint of fairseq-train to a folder that transformers loads."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from transformers import GenerationConfig

import seqstruct
from seqstruct.attention import get_attention
from seqstruct.bridge.checkpoints import configuration_of, load_checkpoint
from seqstruct.data.files import new_folder, write_json, write_text
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.pipeline import TextPipeline
from seqstruct.exchange.architecture import config_of, converted, difference
from seqstruct.exchange.card import AUTO, ExportedRun, card
from seqstruct.exchange.shipped import flat, shipped
from seqstruct.hf import SeqstructConfig, SeqstructTokenizer
from seqstruct.loading.base import TextModel
from seqstruct.loading.load import load

TOLERANCE = 1e-5  # of logits in float32
LONGEST = 200  # tokens that fairseq-generate writes by default, the end of sentence apart
CONFIGURATION, TOKENIZATION = "seqstruct.hf.configuration", "seqstruct.hf.tokenization"


def export(
    checkpoint: str | os.PathLike,
    out: str | os.PathLike,
    data: str | os.PathLike | None = None,
    *,
    tokenized: bool = False,
    scores: Sequence[str | os.PathLike] = (),
    licence: str = "",
) -> ExportedRun:
    """Write a new folder `out`; what its card tells comes back.

    data, tokenized: as of `seqstruct.load`.  scores: files that `seqstruct score` and others wrote or printed, for the
    card; licence: of the data, if the prepared folder does not say it.
    Raises what `seqstruct.load` and `new_folder` do, and ValueError on a model without counterpart in transformers, if
    logits differ by more than TOLERANCE, or if scores are not UTF-8.
    """
    loaded = load(checkpoint, data, tokenized=tokenized)
    state = load_checkpoint(checkpoint)
    configuration = configuration_of(state)
    config = config_of(loaded.model, loaded.task, configuration["model"])
    model = converted(loaded.model, config)
    apart = difference(loaded.model, model)
    if not apart <= TOLERANCE:
        raise ValueError(f"{checkpoint}: logits differ by {apart:g} from fairseq's, expected {TOLERANCE} at most")
    config.architectures = [type(model).__name__]
    code = _code(config, type(model))
    history = state.get("optimizer_history") or [{}]
    run = ExportedRun(
        Path(out).name, config, configuration, (loaded.source, loaded.target),
        _scores(scores), licence,
        history[-1].get("num_updates"), apart, bool(code),
    )
    with new_folder(out) as folder:
        if code:
            module = flat(type(model).__module__)  # transformers copies what it imports; of another one, a second time
            modeling = f"{module}.{type(model).__name__}"
            config.auto_map = {"AutoConfig": f"{module}.SeqstructConfig", "AutoModel": modeling,
                               AUTO[config.arch]: modeling}
        if model.can_generate():
            model.generation_config = generation_of(config)
        model.save_pretrained(folder)
        _write_tokenizer(loaded, config, folder, folder.parent / "scratch", bool(code))
        for name, text in code.items():
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "LICENSE").write_text(own_licence(), encoding="utf-8")
        (folder / "README.md").write_text(card(run), encoding="utf-8")
    return run


def _scores(paths: Sequence[str | os.PathLike]) -> dict[str, str]:
    """Texts by the names of their files, by paths where names are alike."""
    names = [Path(path).name for path in paths]
    return {name if names.count(name) == 1 else os.fspath(path): "\n".join(read_lines(path))
            for name, path in zip(names, paths, strict=True)}


def generation_of(config: SeqstructConfig) -> GenerationConfig:
    """As fairseq-generate with --beam 5 translates by default; a language model goes on with its likeliest tokens."""
    symbols = dict(
        bos_token_id=config.bos_token_id, pad_token_id=config.pad_token_id, eos_token_id=config.eos_token_id,
        suppress_tokens=[config.pad_token_id],
    )
    if not config.is_encoder_decoder:
        return GenerationConfig(**symbols, max_length=config.max_target_positions)
    return GenerationConfig(
        **symbols, decoder_start_token_id=config.decoder_start_token_id, num_beams=5, length_penalty=1.0,
        early_stopping=True, min_length=2, max_length=min(LONGEST, config.max_target_positions - 1) + 2,
    )


def _code(config: SeqstructConfig, model: type) -> dict[str, str]:
    """The files of code, none where a mechanism is not this package's own."""
    default = SeqstructConfig.decoder_self_attention  # which a configuration has at sites that the model has not
    mechanisms = [get_attention(name) for name in sorted({default, *config.mechanisms})]
    if not all(m.__module__.startswith("seqstruct.") for m in mechanisms):
        return {}
    registered = [(m.__module__, m.__qualname__) for m in mechanisms]
    roots = [(model.__module__, model.__name__), (CONFIGURATION, "SeqstructConfig"),
             (TOKENIZATION, "SeqstructTokenizer")]
    return shipped(roots, {CONFIGURATION: registered}, seqstruct.__version__)


def _write_tokenizer(loaded: TextModel, config: SeqstructConfig, folder: Path, scratch: Path, shipped: bool) -> None:
    sides = {"source": loaded.source, "target": loaded.target}
    dictionaries = {"source": loaded.task.source_dictionary, "target": loaded.task.target_dictionary}
    if not config.is_encoder_decoder:
        sides, dictionaries = {"source": loaded.source}, {"source": dictionaries["source"]}
    given: dict[str, Any] = {}
    scratch.mkdir()
    for side, pipeline in sides.items():
        given[f"{side}_vocab"] = str(scratch / f"vocab.{side}")
        write_text(given[f"{side}_vocab"], dictionaries[side].symbols)
        given[f"{side}_pipeline"] = _fields(pipeline)
        for name in ("model", "truecaser"):
            if getattr(pipeline, name) is not None:
                given[f"{side}_{name}"] = str(getattr(pipeline, name))
    language_model = config.arch == "structured_transformer_lm"
    symbols = dictionaries["source"]
    names = {"bos_token": config.bos_token_id, "pad_token": symbols.pad(), "eos_token": symbols.eos(),
             "unk_token": symbols.unk()}
    words = {name: symbols[index] for name, index in names.items()}
    tokenizer = SeqstructTokenizer(
        **given, **words, begin=language_model, end=config.is_encoder_decoder,
        model_max_length=config.max_target_positions if language_model else config.longest_source,
        padding_side="left" if language_model else "right",
    )
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    saved = json.loads(path.read_text(encoding="utf-8"))
    if shipped:
        saved["auto_map"] = {"AutoTokenizer": [f"{flat(TOKENIZATION)}.SeqstructTokenizer", None]}
    write_json(path, saved)


def _fields(pipeline: TextPipeline) -> dict[str, Any]:
    return {name: value for name, value in vars(pipeline).items() if type(value) in (str, bool, int)}


def own_licence() -> str:
    """The text of this package's licence.  Raises ValueError where it is not found."""
    path = Path(seqstruct.__file__).resolve().parent.parent / "LICENSE"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    try:
        found = distribution("seqstruct")
        text = found.read_text("licenses/LICENSE") or found.read_text("LICENSE")
    except PackageNotFoundError:
        text = None
    if not text:
        raise ValueError("the licence of seqstruct is not beside the package: expected LICENSE")
    return text
