"""What is completed and checked before a model is built; mistakes in options are in `tests/bridge/test_mistakes.py`."""

from __future__ import annotations

import types
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils, criterions
from fairseq.dataclass.configs import FairseqConfig
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from omegaconf import OmegaConf

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.bridge.patches.requirements import check_options, check_targets, check_task, initialize
from seqstruct.tasks.nli import NLITask
from seqstruct.tasks.recognition import RecognitionTask
from tests.golden.checkpoints.make import FOLDER
from tests.models.building import dictionary_of

TABLES = {"decoder_embed_dim": 12, "decoder_input_dim": None, "decoder_output_dim": 7}


@pytest.mark.parametrize("lacking", [(), ("cell_clip", "logit_clip", "reverse_source")], ids=str)
def test_options_that_a_presets_checkpoint_lacks_have_their_defaults(lacking: tuple[str, ...], tmp_path: Path) -> None:
    """Not the preset's, which reverses its sources."""
    state = load_checkpoint(FOLDER / "rnn_luong_local_p.pt")
    assert state["cfg"]["model"]["_name"] == "rnn_luong_local_p"
    for option in lacking:
        del state["cfg"]["model"][option]
    path = str(tmp_path / "older.pt")
    torch.save(state, path)
    (model,), cfg, _ = checkpoint_utils.load_model_ensemble_and_task([path], {"data": str(FOLDER / "data" / "text")})
    assert (cfg.model.cell_clip, cfg.model.logit_clip, model.encoder.reverse) == (0.0, 0.0, not lacking)
    assert model.state_dict().keys() == state["model"].keys()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({**TABLES, "share_all_embeddings": True},
         "--share-all-embeddings needs one size: --decoder-input-dim is 12, --decoder-output-dim 7"),
        *(({"adaptive_softmax_cutoff": cutoffs}, f"--adaptive-softmax-cutoff: expected rising .*, got {cutoffs}")
          for cutoffs in ("12,8", "5,5", "0,5", "-3", "x", "")),
        ({**TABLES, "adaptive_input": True, "adaptive_input_cutoff": "5,8", "adaptive_input_factor": 4.0},
         "--adaptive-input-factor 4: the size 12 is divided by it for each of 2 cutoffs"),
    ],
)
def test_numbers_out_of_range(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_options(options)
    check_options(TABLES)
    check_options({**TABLES, "adaptive_input": True, "adaptive_input_cutoff": "(5, 8)", "adaptive_input_factor": 3.0})
    check_options({**TABLES, "decoder_input_dim": 7, "share_decoder_input_output_embed": True})
    check_options({"dropout": 0.0, "decoder_embed_dim": 1, "decoder_layers": 0, "tied": True, "name": "x"})


def test_made_for_another_task() -> None:
    made = types.new_class("Made")
    made.made_for = ("nli",)
    other, own = FairseqTask.__new__(FairseqTask), NLITask.__new__(NLITask)
    with pytest.raises(ValueError, match="the model made needs --task nli, not FairseqTask"):
        check_task("model", "made", made, other)
    check_task("model", "made", made, own)
    check_task("model", "made", object, other)


def test_subsets_are_combined_by_tasks_that_can() -> None:
    config = OmegaConf.structured(FairseqConfig())
    config.dataset.combine_valid_subsets, config.task = True, {"_name": "nli"}
    built = []
    for task, subset, told in (
        (NLITask, "valid", "--combine-valid-subsets does nothing in --task nli"),
        (LanguageModelingTask, "valid,test", "goes with --valid-subset valid, not valid,test"),
    ):
        config.dataset.valid_subset = subset
        with pytest.raises(ValueError, match=told):
            initialize(lambda *given: built.append(given), None, config, task.__new__(task))
    config.dataset.valid_subset = "valid"
    initialize(lambda *given: built.append(given), None, config, LanguageModelingTask.__new__(LanguageModelingTask))
    config.dataset.combine_valid_subsets = None
    initialize(lambda *given: built.append(given), None, config, NLITask.__new__(NLITask))
    assert len(built) == 2


def test_criterions_of_symbols_are_none_for_labels() -> None:
    """`cross_entropy` is what fairseq takes where none is given."""
    own, strings = NLITask.__new__(NLITask), RecognitionTask.__new__(RecognitionTask)
    strings.target, registry = dictionary_of("ab"), criterions.CRITERION_REGISTRY
    for task, told in ((own, "nli.*--criterion classification_cross"), (strings, "recognition.*--criterion recogn")):
        with pytest.raises(ValueError, match=f"cross_entropy is none for --task {told}"):
            check_targets("cross_entropy", registry["cross_entropy"], task)
    check_targets("classification_cross_entropy", registry["classification_cross_entropy"], own)
    check_targets("cross_entropy", registry["cross_entropy"], FairseqTask.__new__(FairseqTask))
