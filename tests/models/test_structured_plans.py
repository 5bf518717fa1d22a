"""Trees in a transformer's encoder and segmentation in its decoder: trained, penalised and decoded through fairseq."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from seqstruct.bridge.checkpoints import load_checkpoint
from tests.models.building import dictionary_of, small_translation_model
from tests.models.front_door import fairseq, nearly_equal, sizes


@pytest.mark.training
def test_trees_below_and_segments_across(reversals: Path, tmp_path: Path) -> None:
    log = fairseq(
        "train", reversals / "bin", "--arch", "structured_transformer", *sizes(dim=12, inner=20, heads=2, layers=2),
        "--encoder-self-attention", "dependency(hidden_size=4,score_size=4) + soft_children(hidden_size=4)",
        "--cross-attention", "segmentation(pairwise_l2=0.5)", "--criterion", "structured_cross_entropy",
        "--optimizer", "adam", "--lr", 0.01, "--max-tokens", 120, "--max-epoch", 4, "--update-epoch-batch-itr", "True",
        "--no-epoch-checkpoints", "--dropout", 0.0, "--save-dir", tmp_path,
    )
    losses = [float(loss) for loss in re.findall(r"valid on 'valid' subset.*?nll_loss ([\d.]+)", log)]
    assert len(losses) == 4 and losses[-1] < 0.9 * losses[0]
    penalties = [float(p) for p in re.findall(r"valid on 'valid' subset.*?\| penalty (\S+)", log)]
    model = load_checkpoint(tmp_path / "checkpoint_last.pt")["model"]
    pairwise = [value for name, value in model.items() if name.endswith("encoder_attn.mechanism.pairwise")]
    assert len(pairwise) == 2 and all(p.abs().max() > 0 for p in pairwise)
    assert abs(penalties[-1] - sum(0.5 * float(p.square().sum()) for p in pairwise)) < 1e-5
    options = (reversals / "bin", "--path", tmp_path / "checkpoint_best.pt", "--max-len-b", 10, "--beam", 3)
    texts = [fairseq("generate", *options, "--batch-size", size) for size in (7, 1)]
    beams = [sorted(re.findall(r"^H-(\d+)\t\S+\t(.*)$", text, re.M)) for text in texts]
    assert len(beams[0]) == 60 and nearly_equal(*beams)


def test_segmentation_by_scaled_products_is_refused() -> None:
    """Rather than started anew from its initial values, with a warning, as another mechanism is."""
    state = dict(small_translation_model(dictionary_of("abc")).state_dict())
    model = small_translation_model(dictionary_of("abc"), cross_attention="segmentation")
    model.upgrade_state_dict(dict(state))
    state["decoder.layers.1.encoder_attn.mechanism.pairwise"] = torch.zeros(2, 2, 2)
    with pytest.raises(ValueError, match="checkpoint's segmentation scores by scaled products"):
        model.upgrade_state_dict(state)
