"""Which facts a CRF chooses for a question of bAbI, and the drawing of it."""

from __future__ import annotations

import pytest
import torch

from seqstruct.data.babi.folder import write_folder
from seqstruct.data.babi.stories import TASKS, read_questions
from seqstruct.models.sentences.memory_network import MemoryNetworkConfig, MemoryNetworkModel
from seqstruct.plots import facts as figure
from seqstruct.tasks.babi_qa import BabiQAConfig, BabiQATask
from tests.data.babi.stories_text import STORY


def test_facts_of_a_question(tmp_path):
    for split in ("train", "test"):
        (tmp_path / f"qa19_{TASKS[19]}_{split}.txt").write_text(STORY * 4, encoding="utf-8")
    data = tmp_path / "data"
    write_folder(tmp_path, 19, data)
    task = BabiQATask.setup_task(BabiQAConfig(data=str(data), seeds=2, first_seed=5))
    cfg = MemoryNetworkConfig(inference="binary_crf", steps=3, embed_dim=4, initialization_deviation=0.8)
    chosen = figure.choose(MemoryNetworkModel.build_model(cfg, task), task, "test", 2, 6)
    assert chosen.node.shape == (3, 3) and chosen.edge.shape == (2, 3, 3)
    torch.testing.assert_close(chosen.edge.sum((1, 2)), torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(chosen.edge[0].sum(1), chosen.node[0])
    probabilities = [p for _, p in chosen.sequences]
    assert probabilities == sorted(probabilities, reverse=True) and 0 < sum(probabilities) < 1
    first = chosen.sequences[0][0]
    assert all(a != b for a, b in zip(first, first[1:], strict=False)) and set(first) <= {1, 2, 3}
    drawn = figure.draw(read_questions(data / "test.txt")[1], chosen)
    assert "facts 3 → 2" in drawn.axes[0].get_title()
    train = read_questions(data / "train.txt")
    model = MemoryNetworkModel.build_model(cfg, task)
    for number, question in enumerate(train, 1):  # whose order is drawn for training
        assert figure.choose(model, task, "train", number, 6).node.shape == (3, len(question.facts))
    for question, seed, message in ((99, 5, "expected a question of"), (1, 4, "expected a seed of 5 .. 6")):
        with pytest.raises(ValueError, match=message):
            figure.choose(MemoryNetworkModel.build_model(cfg, task), task, "test", question, seed)
    with pytest.raises(ValueError, match="memn2n has no marginals"):
        figure.choose(MemoryNetworkModel.build_model(MemoryNetworkConfig(), task), task, "test", 1, 5)
