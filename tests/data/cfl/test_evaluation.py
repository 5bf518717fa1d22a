import math

import pytest

from seqstruct.data.cfl.evaluation import evaluate_cfl
from seqstruct.data.cfl.folder import read_split
from tests.tasks.stub import bigram_model, log_probability, make_task


@pytest.mark.parametrize("batch_size", [1, 2, 50])
@pytest.mark.parametrize("split", ["valid", "test"])
def test_comparison_is_the_definition(tmp_path, split, batch_size):
    task = make_task(tmp_path / "padded", "padded-reversal")
    model = bigram_model(task).train()
    strings, bounds = read_split(task.cfg.data, split, task.meta)
    losses = [-log_probability(model, string, task.source_dictionary) for string in strings]
    found = evaluate_cfl(model, task, split, batch_size)
    assert model.training
    valid = math.log(task.meta["valid_length_counts"][split])
    rows = {None: range(len(strings))}
    for length in sorted({len(string) for string in strings}):
        rows[length] = [i for i, string in enumerate(strings) if len(string) == length]
    assert [row.length for row in (found.overall, *found.by_length)] == list(rows)
    for row in (found.overall, *found.by_length):
        chosen = rows[row.length]
        symbols = sum(len(strings[i]) + 1 for i in chosen)
        bound = sum(valid * (row.length is None) - bounds[i] for i in chosen) / symbols
        assert row.strings == len(chosen)
        assert row.lower_bound == pytest.approx(bound, rel=1e-12)
        assert row.cross_entropy == pytest.approx(sum(losses[i] for i in chosen) / symbols, rel=1e-5)
        assert row.difference == pytest.approx(row.cross_entropy - bound, rel=1e-12)


def test_training_strings_have_no_bound(tmp_path):
    task = make_task(tmp_path / "dyck")
    with pytest.raises(ValueError, match="'train' has no true log-probabilities"):
        evaluate_cfl(bigram_model(task), task, "train")
