"""Trees in a transformer's encoder and segmentation in its decoder: trained, penalised and decoded through fairseq."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from seqstruct.bridge.checkpoints import load_checkpoint
from tests.models.building import dictionary_of, small_translation_model
from tests.models.front_door import PLUGIN, binarize, fairseq, nearly_equal, sizes, write_copy_corpus


@pytest.mark.training
def test_trees_below_and_segments_across(tmp_path: Path) -> None:
    write_copy_corpus(tmp_path, sentences=30)
    data, save = binarize(tmp_path, tmp_path / "bin"), tmp_path / "run"
    log = fairseq(
        "train", data, "--user-dir", PLUGIN, "--cpu", "--num-workers", 0, "--arch", "structured_transformer",
        *sizes(dim=12, inner=20, heads=2, layers=2),
        "--encoder-self-attention", "dependency(hidden_size=4,score_size=4) + soft_children(hidden_size=4)",
        "--cross-attention", "segmentation(pairwise_l2=0.5)", "--criterion", "structured_cross_entropy",
        "--optimizer", "adam", "--lr", 0.01, "--max-tokens", 120, "--max-epoch", 4, "--update-epoch-batch-itr", "True",
        "--no-epoch-checkpoints", "--dropout", 0.0, "--log-format", "simple", "--save-dir", save,
    )  # fmt: skip
    losses = [float(loss) for loss in re.findall(r"valid on 'valid' subset.*?nll_loss ([\d.]+)", log)]
    assert len(losses) == 4 and losses[-1] < 0.9 * losses[0]
    penalties = [float(p) for p in re.findall(r"valid on 'valid' subset.*?\| penalty (\S+)", log)]
    model = load_checkpoint(save / "checkpoint_last.pt")["model"]
    pairwise = [value for name, value in model.items() if name.endswith("encoder_attn.mechanism.pairwise")]
    assert len(pairwise) == 2 and all(p.abs().max() > 0 for p in pairwise)
    assert abs(penalties[-1] - sum(0.5 * float(p.square().sum()) for p in pairwise)) < 1e-5
    options = (data, "--user-dir", PLUGIN, "--path", save / "checkpoint_best.pt", "--cpu", "--max-len-b", 20)
    beams = [
        sorted(re.findall(r"^H-(\d+)\t\S+\t(.*)$", fairseq("generate", *options, "--beam", 3, *batches), re.M))
        for batches in (("--batch-size", 7), ("--batch-size", 1))
    ]
    assert len(beams[0]) == 30 and nearly_equal(*beams)


def test_segmentation_by_scaled_products_is_refused() -> None:
    """Rather than started anew from its initial values, with a warning, as another mechanism is."""
    state = dict(small_translation_model(dictionary_of("abc")).state_dict())
    model = small_translation_model(dictionary_of("abc"), cross_attention="segmentation")
    model.upgrade_state_dict(dict(state))
    state["decoder.layers.1.encoder_attn.mechanism.pairwise"] = torch.zeros(2, 2, 2)
    with pytest.raises(ValueError, match="checkpoint's segmentation scores by scaled products"):
        model.upgrade_state_dict(state)
