from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from seqstruct.data.cfl.chart import log_probabilities
from seqstruct.data.cfl.folder import StringsRequest, read_meta, read_split, write_folder
from seqstruct.data.cfl.own import own_language
from tests.tasks.stub import SMALL, batches, bigram_model, log_probability, make_task, task_of


@pytest.fixture()
def task(tmp_path):
    return make_task(tmp_path / "dyck")


def test_the_dictionary_is_the_terminals_in_order(task):
    dictionary = task.source_dictionary
    assert dictionary.nspecial == 4
    assert [dictionary[i] for i in range(4, len(dictionary))] == ["(", ")", "[", "]"]
    assert task.target_dictionary is dictionary


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_every_string_once_as_stored(task, split):
    """BOS before the source, EOS after the target, batches of one length, true log-probabilities in nats."""
    strings, log_probability = read_split(task.cfg.data, split, read_meta(task.cfg.data))
    seen = []
    for sample in batches(task, split, max_sentences=10, required_batch_size_multiple=8):
        source, target = sample["net_input"]["src_tokens"], sample["target"]
        assert (source[:, 0] == task.source_dictionary.bos()).all()
        assert (target[:, -1] == task.source_dictionary.eos()).all()
        torch.testing.assert_close(source[:, 1:], target[:, :-1])
        assert sample["net_input"]["src_lengths"].tolist() == [source.size(1)] * source.size(0)
        assert sample["nsentences"] == source.size(0) <= SMALL["batch"]
        assert sample["ntokens"] == target.numel()
        for row, i in enumerate(sample["id"].tolist()):
            assert (source[row, 1:] - 4).tolist() == strings[i].tolist()
            if log_probability is not None:
                assert sample["true_log_probability"][row] == log_probability[i]
        assert ("true_log_valid_lengths" in sample) == (split != "train")
        seen += sample["id"].tolist()
    assert seen == list(range(len(strings)))


def test_a_language_of_ones_own(tmp_path):
    """The same task: its symbols, its lengths and its true log-probabilities."""
    language = own_language("mine", "rules", 'S -> "(" S ")" S [0.4] | "x" | "y" [0.3]')
    request = StringsRequest("mine", "rules", 20, 20, 1, lengths=(4, 9), test_lengths=(4, 13))
    write_folder(request, tmp_path / "mine", language)
    task = task_of(tmp_path / "mine")
    assert [task.source_dictionary[i] for i in range(4, 8)] == ["(", ")", "x", "y"] == list(task.language.terminals)
    assert task.lengths == [4, 7, 10, 13]
    for sample in batches(task, "valid", max_sentences=10):
        strings = (sample["net_input"]["src_tokens"][:, 1:] - 4).tolist()
        np.testing.assert_allclose(sample["true_log_probability"], log_probabilities(language, strings), rtol=1e-15)
        assert sample["true_log_valid_lengths"] == np.log(2)


def test_batches_are_those_that_were_drawn(task):
    task.load_dataset("train")
    found = task.dataset("train").batch_by_size(np.arange(23), max_sentences=10, required_batch_size_multiple=8)
    assert [batch.tolist() for batch in found] == [list(range(i, min(i + 5, 23))) for i in range(0, 23, 5)]


def test_limits_cut_batches(task):
    task.load_dataset("train")
    dataset = task.dataset("train")
    assert {len(b) for b in dataset.batch_by_size(dataset.ordered_indices(), max_sentences=2)} == {1, 2}
    for batch in dataset.batch_by_size(dataset.ordered_indices(), max_tokens=31):
        assert len(batch) == 1 or dataset.sizes[batch].sum() <= 31
    assert all(len(b) == 1 for b in dataset.batch_by_size(dataset.ordered_indices(), max_tokens=1))
    assert dataset.batch_by_size(np.arange(0)) == []


def test_each_epoch_shuffles_whole_batches(task):
    """As fairseq-train does with --update-epoch-batch-itr: the batches stay, their order is that of the epoch."""
    task.load_dataset("train")
    orders = []
    for _ in range(2):
        for epoch in (1, 2):
            iterator = task.get_batch_iterator(
                task.dataset("train"), max_sentences=10, seed=7, epoch=epoch, update_epoch_batch_itr=True
            )
            orders.append([tuple(s["id"].tolist()) for s in iterator.next_epoch_itr(shuffle=True)])
    assert orders[:2] == orders[2:]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_shards_cover_the_split(task):
    """Two workers see every string once; a shard that is short gets an empty batch."""
    ids = []
    for shard in (0, 1):
        for sample in batches(task, "valid", max_sentences=10, num_shards=2, shard_id=shard):
            ids += sample["id"].tolist() if sample else []
    assert sorted(ids) == list(range(SMALL["valid"]))


def test_over_long_strings(task):
    with pytest.raises(ValueError, match="18 symbols is too long for a model with 12 .* which fairseq-eval-lm"):
        batches(task, "test", max_sentences=5, max_positions=12)
    kept = batches(task, "test", max_sentences=5, max_positions=12, ignore_invalid_inputs=True)
    assert max(sample["target"].size(1) for sample in kept) <= 12


def test_eval_lm_batches(task):
    task.load_dataset("test")
    dataset = task.dataset("test")
    samples = list(task.eval_lm_dataloader(dataset, num_workers=0))
    assert sum(sample["nsentences"] for sample in samples) == len(dataset)
    with pytest.raises(ValueError, match="context-window"):
        task.eval_lm_dataloader(dataset, context_window=3)


def test_prefixes(task):
    """As fairseq-interactive hands them over: with EOS, of any length, the empty one included."""
    encode = task.source_dictionary.encode_line
    lines = ["( [", "", "( ( )"]
    tokens = [encode(line, add_if_not_exist=False).long() for line in lines]
    dataset = task.build_dataset_for_inference(tokens, [len(t) for t in tokens])
    assert len(dataset.batch_by_size(dataset.ordered_indices(), max_sentences=3)) == 3
    sample = dataset.collater([dataset[2]])
    assert sample["net_input"]["src_tokens"].tolist() == [[0, 4, 4, 5]]
    with pytest.raises(ValueError, match="prefix 1 has a symbol that is not one of dyck"):
        task.build_dataset_for_inference([encode("( x", add_if_not_exist=False)], [3])


@pytest.mark.parametrize("given", [True, False])
def test_generation_goes_on_from_the_prefix(task, given):
    model = bigram_model(task).eval()
    dictionary = task.source_dictionary
    generator = SequenceGenerator([model], dictionary, beam_size=2, max_len_b=9)
    dataset = task.build_dataset_for_inference([torch.tensor([4, 6, 7])], [3])
    prefix = torch.tensor([[4, 6]]) if given else None
    sample = dataset.collater([dataset[0]])
    best = task.inference_step(generator, [model], sample, prefix_tokens=prefix)[0][0]
    tokens = best["tokens"].tolist()
    assert tokens[:2] == [4, 6]
    assert given or tokens[:3] == [4, 6, 7]
    if len(tokens) < 10:  # not cut at the longest
        string = [token - 4 for token in tokens[:-1]]
        assert float(best["positional_scores"].sum()) == pytest.approx(
            log_probability(model, string, dictionary), abs=1e-4
        )
    empty = task.build_dataset_for_inference([torch.tensor([2])], [1])
    assert task.inference_step(generator, [model], empty.collater([empty[0]]))[0][0]["tokens"].numel() > 0
    with pytest.raises(ValueError, match="constrained"):
        task.inference_step(generator, [model], sample, constraints=torch.zeros(1))


def test_generator_of_fairseq_generate(task):
    """`build_generator` with --score-reference gives log-probabilities of the stored strings."""
    model = bigram_model(task).eval()
    scorer = task.build_generator([model], Namespace(score_reference=True, print_alignment=None))
    (sample, *_) = batches(task, "test", max_sentences=5)
    strings, _ = read_split(task.cfg.data, "test", task.meta)
    for i, (hypothesis, *_) in zip(sample["id"].tolist(), scorer.generate([model], sample), strict=True):
        expected = log_probability(model, strings[i], task.source_dictionary)
        assert float(hypothesis["positional_scores"].sum()) == pytest.approx(expected, abs=1e-4)
