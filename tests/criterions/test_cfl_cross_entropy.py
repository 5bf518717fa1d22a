import math

import pytest
import torch
from fairseq.logging import metrics

from seqstruct.criterions.cfl_cross_entropy import CFLCrossEntropy
from seqstruct.data.cfl.folder import read_split
from tests.tasks.stub import bigram_model, log_probability, make_task


@pytest.fixture()
def task(tmp_path):
    return make_task(tmp_path / "dyck")


def samples(task, split):
    task.load_dataset(split)
    return list(task.get_batch_iterator(task.dataset(split), max_sentences=10).next_epoch_itr(shuffle=False))


def reduced(criterion, logs):
    with metrics.aggregate(new_root=True) as found:
        criterion.reduce_metrics(logs)
    return dict(found.get_smoothed_values())


def truth(task, model, split):
    """Sums over a split: minus log-probabilities of the model and of the true distribution, symbols with EOS."""
    strings, bounds = read_split(task.cfg.data, split, task.meta)
    losses = [-log_probability(model, string, task.source_dictionary) for string in strings]
    return strings, losses, None if bounds is None else -bounds


def test_loss_is_summed_over_time_and_strings(task):
    model, criterion = bigram_model(task), CFLCrossEntropy(task)
    strings, losses, _ = truth(task, model, "train")
    for sample in samples(task, "train"):
        loss, sample_size, log = criterion(model, sample)
        ids = sample["id"].tolist()
        assert sample_size == log["nsentences"] == log["sample_size"] == len(ids)
        assert loss.item() == pytest.approx(sum(losses[i] for i in ids), rel=1e-5)
        assert log["ntokens"] == sum(len(strings[i]) + 1 for i in ids)
        each, _, _ = criterion(model, sample, reduce=False)
        assert each.tolist() == pytest.approx([losses[i] for i in ids], rel=1e-5)
    assert "true_log_probability" not in sample and log["bounded_tokens"] == 0


def test_gradient_does_not_depend_on_how_an_update_is_split(task):
    """The sum of gradients over the sum of sample sizes: one batch of five, or its parts in turn."""
    model, criterion = bigram_model(task).double(), CFLCrossEntropy(task)
    task.load_dataset("train")
    dataset = task.dataset("train")

    def gradient(parts):
        model.zero_grad()
        size = 0
        for part in parts:
            loss, strings, _ = criterion(model, dataset.collater([dataset[i] for i in part]))
            loss.backward()
            size += strings
        return model.decoder.table.grad / size

    whole, split = gradient([range(5)]), gradient([[0], [1, 2, 3], [4]])
    torch.testing.assert_close(whole, split)
    finite = torch.isfinite(whole)
    assert finite.all()


@pytest.mark.parametrize("split", ["valid", "test"])
def test_metrics_are_the_definition(task, split):
    """Nats a symbol, EOS counted; the bound has the choice of the length in it, but not that of one length."""
    model, criterion = bigram_model(task), CFLCrossEntropy(task, report_by_length=True)
    strings, losses, bounds = truth(task, model, split)
    symbols = sum(len(string) + 1 for string in strings)
    found = reduced(criterion, [criterion(model, sample)[2] for sample in samples(task, split)])
    valid = len(task.language.valid_lengths(4, 15 if split == "valid" else 19))
    cross_entropy = sum(losses) / symbols
    bound = (sum(bounds) + len(strings) * math.log(valid)) / symbols
    assert found["loss"] == pytest.approx(sum(losses) / len(strings), rel=1e-5)
    assert found["cross_entropy"] == pytest.approx(cross_entropy, rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(cross_entropy), rel=1e-5)
    assert found["lower_bound"] == pytest.approx(bound, rel=1e-12)
    assert found["difference"] == pytest.approx(cross_entropy - bound, rel=1e-4)
    for length in {len(string) for string in strings}:
        rows = [i for i, string in enumerate(strings) if len(string) == length]
        bound = sum(bounds[i] for i in rows) / len(rows) / (length + 1)
        assert found[f"lower_bound_{length}"] == pytest.approx(bound, rel=1e-12)
        loss = sum(losses[i] for i in rows) / len(rows) / (length + 1)
        assert found[f"difference_{length}"] == pytest.approx(loss - bound, rel=1e-4)


def test_metrics_batch_by_batch_are_those_of_all(task):
    """As the trainer logs validation, one batch at a time into averages, and as fairseq-validate does, all at once."""
    model, criterion = bigram_model(task), CFLCrossEntropy(task, report_by_length=True)
    logs = [criterion(model, sample)[2] for sample in samples(task, "valid")]
    together = reduced(criterion, logs)
    with metrics.aggregate(new_root=True) as found:
        for log in logs:
            criterion.reduce_metrics([log])
    assert dict(found.get_smoothed_values()) == pytest.approx(together, rel=1e-12)


@pytest.mark.parametrize("report_by_length", [False, True])
def test_logs_can_be_summed_across_workers(task, report_by_length, monkeypatch):
    """Training and validation batches of any length have the same keys, and the same kind of value under each."""
    model, criterion = bigram_model(task), CFLCrossEntropy(task, report_by_length)
    monkeypatch.setattr("seqstruct.criterions.cfl_cross_entropy._several_workers", lambda: True)
    assert criterion.logging_outputs_can_be_summed()
    logs = [criterion(model, sample)[2] for sample in samples(task, "valid")]
    training = criterion(model, samples(task, "train")[0])[2]
    for log in logs:
        assert {name: torch.is_tensor(value) for name, value in training.items()} == {
            name: torch.is_tensor(value) for name, value in log.items()
        }
    summed = {key: sum(log[key] for log in logs) for key in logs[0]}
    assert reduced(criterion, [summed]) == pytest.approx(reduced(criterion, logs), rel=1e-12)
    assert reduced(criterion, [{key: 0 for key in summed}]) == {}


def test_nothing_is_rounded(task):
    """Schedules and early stopping compare these numbers: two that differ in the seventh digit stay different."""
    criterion = CFLCrossEntropy(task)
    log = {"loss": 1.0, "ntokens": 7, "nsentences": 1, "lower_bound": 0.5, "bounded_tokens": 7}
    one, two = (reduced(criterion, [{**log, "loss": loss}]) for loss in (1.0, 1.0000001))
    for name in ("cross_entropy", "perplexity", "difference", "loss"):
        assert one[name] < two[name]


def test_the_true_distribution_has_difference_zero(tmp_path):
    """Marked reversal of length 1 is one string: a model that is certain of it pays nothing."""
    task = make_task(tmp_path / "one", "marked-reversal", lengths=(1, 1), test_lengths=(1, 1))
    model = bigram_model(task)
    dictionary = task.source_dictionary
    with torch.no_grad():
        model.decoder.table.fill_(-60.0)
        mark = dictionary.index("#")
        model.decoder.table[dictionary.bos(), mark] = 60.0
        model.decoder.table[mark, dictionary.eos()] = 60.0
    criterion = CFLCrossEntropy(task)
    result = reduced(criterion, [criterion(model, sample)[2] for sample in samples(task, "valid")])
    assert result["lower_bound"] == pytest.approx(0.0, abs=1e-12)
    assert result["difference"] == pytest.approx(0.0, abs=1e-12)


def test_an_infinite_loss_is_reported(task):
    criterion = CFLCrossEntropy(task)
    log = {"loss": math.inf, "ntokens": 7, "nsentences": 1, "lower_bound": 0.5, "bounded_tokens": 7}
    found = reduced(criterion, [log])
    assert found["perplexity"] == found["cross_entropy"] == math.inf
