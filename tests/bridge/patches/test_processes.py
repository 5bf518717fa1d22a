"""Processes on CPUs: what they tell each other, and the default backend."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
from fairseq.distributed import utils as distributed
from fairseq.models.distributed_fairseq_model import DistributedFairseqModel
from fairseq.tasks.language_modeling import LanguageModelingTask
from torch import nn


@pytest.fixture(scope="module")
def group() -> Iterator[torch.distributed.ProcessGroup]:
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield torch.distributed.group.WORLD
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("count", [20, 20_000])
def test_objects_of_any_size_are_gathered(group: torch.distributed.ProcessGroup, count: int) -> None:
    log = {"loss": torch.tensor(1.5), "counts": list(range(count))}
    assert distributed.all_gather_list(log, group) == [log]


def test_what_no_perplexity_counts_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    task = LanguageModelingTask.__new__(LanguageModelingTask)
    monkeypatch.setattr(task, "get_batch_iterator", lambda **_: SimpleNamespace(next_epoch_itr=lambda shuffle: None))
    for positions in (None, 9):
        task.eval_lm_dataloader(dataset=SimpleNamespace(sizes=[9, 3, 1]), max_positions=positions)
    assert not caplog.records
    task.eval_lm_dataloader(dataset=SimpleNamespace(sizes=[9, 3, 1]), max_positions=2)
    assert caplog.messages == ["the perplexity is without 2 of 3 sequences, 12 of 13 tokens, that are longer than the "
                               "2 positions of the model"]


@pytest.mark.filterwarnings("ignore:`broadcast_buffers` is deprecated:FutureWarning")
def test_the_default_backend_takes_a_model(group: torch.distributed.ProcessGroup) -> None:
    options = SimpleNamespace(
        tpu=False, ddp_backend="pytorch_ddp", device_id=0, broadcast_buffers=False, bucket_cap_mb=25,
        find_unused_parameters=False, gradient_as_bucket_view=False, ddp_comm_hook="none", heartbeat_timeout=-1,
    )
    layer = nn.Linear(3, 2)
    model = DistributedFairseqModel(options, layer, group, torch.device("cpu"))
    model(torch.ones(5, 3)).sum().backward()
    assert torch.equal(layer.weight.grad, torch.full((2, 3), 5.0))
