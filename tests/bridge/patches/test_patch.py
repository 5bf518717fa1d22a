"""One list of patches: each says its defect, stands in its place once, and does so however often it is imported."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

from seqstruct.bridge.patches.compat import prepare_fairseq
from seqstruct.bridge.patches.patch import MARK, PATCHES, Patch, apply_patches

MENDED = {
    "AdaptiveLoss.forward", "Adam.step", "BaseFairseqModel.load_state_dict", "BaseFairseqModel.prepare_for_inference_",
    "BucketPadLengthDataset.__init__", "DiverseBeamSearch.step",
    "Dictionary.add_from_file", "EMA._step_internal", "EMA.restore", "EMA.step", "FairseqMultiModel.load_state_dict",
    "FairseqTask.build_generator", "FairseqTask.filter_indices_by_size", "FairseqTask.get_batch_iterator",
    "FairseqTask.train_step", "FairseqDropout.forward", "JobReturn.return_value",
    "LanguageModelingTask.eval_lm_dataloader", "Linear.forward", "NGramRepeatBlock.forward", "SequenceScorer.generate",
    "Trainer.__init__",
    "Trainer.load_checkpoint", "Trainer.save_checkpoint", "Trainer.state_dict", "Trainer.train_step",
    "fairseq.checkpoint_utils.checkpoint_paths",
    "fairseq.checkpoint_utils.load_checkpoint", "fairseq.checkpoint_utils.load_checkpoint_to_cpu",
    "fairseq.checkpoint_utils.load_model_ensemble_and_task", "fairseq.checkpoint_utils.verify_checkpoint_directory",
    "fairseq.criterions.build_criterion", "fairseq.data.data_utils.batch_by_size",
    "fairseq.distributed.utils._broadcast_object_slow", "fairseq.distributed.utils.all_gather_list",
    "fairseq.distributed.utils.call_main",
    "fairseq.models.build_model", "fairseq.models.distributed_fairseq_model.DistributedDataParallel",
    "fairseq.tasks.setup_task", "fairseq.utils.clip_grad_norm_", "fairseq.utils.load_align_dict",
    "fairseq.utils.post_process_prediction", "set_torch_seed.__init__", "sys.excepthook",
}


def test_the_list() -> None:
    assert {name.split(" by ")[0] for name in PATCHES} == MENDED
    for entered in PATCHES.values():
        assert entered.function.__doc__, f"{entered.name} does not say what is wrong with the original"
        assert entered.function.__module__.startswith("seqstruct.bridge.patches.")


@pytest.mark.parametrize("name", list(PATCHES))
def test_each_stands_in_its_place_once(name: str) -> None:
    prepare_fairseq.cache_clear()
    prepare_fairseq()
    entered = PATCHES[name]
    before = entered.original
    assert entered.applied and getattr(before, MARK).count(name) == 1
    apply_patches()
    assert entered.original is before


def test_importing_twice_patches_once() -> None:
    code = """
import sys
from seqstruct.bridge.patches.patch import MARK, PATCHES
import seqstruct.models
before = {name: entered.original for name, entered in PATCHES.items()}
for name in [name for name in sys.modules if name.startswith("seqstruct.bridge")]:
    del sys.modules[name]
from seqstruct.bridge.patches.compat import prepare_fairseq
from seqstruct.bridge.patches.patch import PATCHES as again
prepare_fairseq()
assert again is not PATCHES and again.keys() == PATCHES.keys()
assert all(again[name].applied and again[name].original is before[name] for name in again)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_original_comes_first_and_properties_stay_properties() -> None:
    module = types.ModuleType("module")
    module.double = lambda x: 2 * x

    class Owner:
        """With a property."""

        @property
        def size(self) -> int:
            return 3

    def one_more(original, x):
        """One is missing."""
        return original(x) + 1

    for owner, attribute in ((module, "double"), (Owner, "size")):
        entered = Patch(owner, attribute, one_more)
        assert not entered.applied
        PATCHES[entered.name] = entered
        try:
            apply_patches()
            apply_patches()
        finally:
            del PATCHES[entered.name]
        assert entered.applied
    assert module.double(5) == 11 and Owner().size == 4
