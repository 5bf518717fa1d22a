"""--retain-dropout keeps all dropout of a model in decoding, or is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.models.building import dictionary_of, small_recurrent_model, small_translation_model, sources_of

DICTIONARY = dictionary_of("abcdefgh")
BEFORE = torch.tensor([[2, 6, 7], [2, 8, 9]])


def prepared(model: Any, modules: list[str] | None = None) -> Any:
    generation = SimpleNamespace(retain_dropout=True, retain_dropout_modules=modules, beam=1, print_alignment=None)
    model.prepare_for_inference_(SimpleNamespace(generation=generation))
    return model


def logits(model: Any) -> torch.Tensor:
    return model(**sources_of([[4, 7, 5, 9, 2], [10, 6, 2]])["net_input"], prev_output_tokens=BEFORE)[0]


@pytest.mark.parametrize("mechanism", ["softmax", "luong", "alignment_crf", "segmentation"])
def test_dropped_weights_are_kept(mechanism: str) -> None:
    options = {"cross_attention": mechanism, "dropout": 0.0, "attention_dropout": 0.5}
    kept = prepared(small_translation_model(DICTIONARY, **options))
    assert not torch.equal(logits(kept), logits(kept))
    assert kept.decoder.layers[0].encoder_attn.mechanism.dropout_rate == 0.5
    left = prepared(small_translation_model(DICTIONARY, **options), ["StructuredDecoderLayer"])
    assert torch.equal(logits(left), logits(left))
    named = prepared(small_translation_model(DICTIONARY, **options), ["MultiheadAttention"])
    assert not torch.equal(logits(named), logits(named))


def test_a_model_that_keeps_none_refuses() -> None:
    with pytest.raises(ValueError, match="--retain-dropout: a RecurrentTranslationModel has no dropout that decoding"):
        prepared(small_recurrent_model(DICTIONARY, 1))
