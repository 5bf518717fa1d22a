"""The model card of an exported run."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from seqstruct.data.text.pipeline import TextPipeline
from seqstruct.exchange.card import ExportedRun, card
from seqstruct.hf import SeqstructConfig, SeqstructForSequenceClassification, SeqstructTokenizer
from seqstruct.tasks.document_translation import DocumentTranslationConfig
from seqstruct.tasks.subword_regularization import SubwordRegularizationConfig

PLACES = {"data", "training_text", "source_subword_model", "target_subword_model", "documents"}


def run_of(config: SeqstructConfig, **options: object) -> ExportedRun:
    configuration = {"model": options, "task": {"_name": "text_classification"}}
    return ExportedRun("made", config, configuration, (TextPipeline(),) * 2, {}, "", 5, 0.0, False)


def test_options_of_zero_are_told():
    """The default of dropout is 0.1: left out, it would be taken for that."""
    text = card(run_of(SeqstructConfig(arch="structured_transformer"), dropout=0.0, layers=0, tied=False, path="",
                       nothing=None))
    assert 'model: {"dropout": 0.0, "layers": 0}' in text


def test_no_place_on_the_machine_is_told():
    places = {field.name: "/elsewhere/x" for task in (SubwordRegularizationConfig, DocumentTranslationConfig)
              for field in fields(task) if field.name in PLACES}
    assert len(places) == len(PLACES)
    run = run_of(SeqstructConfig(arch="structured_transformer"))
    run.configuration["task"].update(places, sampling_alpha=0.25)
    assert 'task: {"_name": "text_classification", "sampling_alpha": 0.25}' in card(run)


def test_the_longest_text_is_one_that_the_model_reads():
    """A classifier by its first token puts that before a text, in one of the positions."""
    for pooling, longest in (("first", 6), ("mean", 7)):
        config = SeqstructConfig(
            arch="structured_transformer_classifier", vocab_size=9, encoder_layers=1, decoder_layers=0,
            encoder_embed_dim=8, encoder_ffn_embed_dim=5, encoder_attention_heads=2, max_source_positions=7,
            pooling=pooling, interleaved_positions=True,
        )
        assert f"Texts of at most {longest} tokens of the source." in card(run_of(config))
        model = SeqstructForSequenceClassification(config).eval()
        assert model(torch.full((3, longest), 5)).logits.isfinite().all()
        with pytest.raises(ValueError, match="the model has 7 positions"):
            model(torch.full((3, longest + 1), 5))


def test_the_code_for_pairs_runs(tmp_path, capsys):
    (tmp_path / "vocab").write_text("<s>\n<pad>\n</s>\n<unk>\n...\n")
    config = SeqstructConfig(
        arch="structured_transformer_classifier", vocab_size=5, encoder_layers=1, decoder_layers=0,
        encoder_embed_dim=8, encoder_ffn_embed_dim=5, encoder_attention_heads=2, pairs=True, max_source_positions=7,
        pad_token_id=1, id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1},
    )
    names = {"tokenizer": SeqstructTokenizer(str(tmp_path / "vocab"))}
    names["model"] = SeqstructForSequenceClassification(config).eval()
    code = card(run_of(config)).partition("```python\n")[2].partition("```")[0].partition(".eval()\n")[2]
    with torch.no_grad():
        exec(code, names)
    assert capsys.readouterr().out.strip() in ("no", "yes")
