"""Tasks on folders of this package."""

from __future__ import annotations

import types

import pytest
from fairseq.tasks import TASK_REGISTRY

import seqstruct.tasks  # noqa: F401  registers them
from seqstruct.tasks.folder_task import FolderTask

ALL = {name: task for name, task in TASK_REGISTRY.items() if issubclass(task, FolderTask)}


def test_which_there_are() -> None:
    assert set(ALL) == {
        "babi_qa", "cfl_language_modeling", "joint_parsing", "nli", "recognition", "symbol_tagging",
        "text_classification", "tree_transduction",
    }


@pytest.mark.parametrize("name", list(ALL))
def test_each_says_what_makes_its_folder(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} needs a folder made by .*(seqstruct prepare|data-prep/)"):
        ALL[name].setup_task(types.SimpleNamespace(data=None), from_checkpoint=True)
