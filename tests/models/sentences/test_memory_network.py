"""Memory networks: against plain loops, seeds side by side against one alone, and through fairseq's commands."""

from __future__ import annotations

import itertools
import re

import pytest
import torch

from seqstruct.data.babi.folder import write_folder
from seqstruct.data.babi.stories import TASKS
from seqstruct.models.sentences.memory_network import INFERENCE, MemoryNetwork, MemoryNetworkConfig, bags_of_words
from tests.data.babi.stories_text import STORY
from tests.models.front_door import fairseq

V, C = 11, 5


def network(inference, steps, seeds=(1, 2), deviation=0.7, **options):
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    cfg = MemoryNetworkConfig(
        inference=inference, steps=steps, embed_dim=C, initialization_deviation=deviation, **options
    )
    return MemoryNetwork(cfg, V, 6, generators).double()


def batch(generator, S=2, B=3, M=4):
    sentences = torch.randint(V, (7, 6), generator=generator)
    for row, length in enumerate([6, 1, 3, 5, 2, 4, 6]):
        sentences[row, length:] = -1
    facts = torch.randint(7, (S, B, M), generator=generator)
    facts[0, 1, 3:] = -1
    facts[1, 2, 1:] = -1
    return sentences, facts, torch.randint(7, (S, B), generator=generator)


def embedded(net, s, sentence, k):
    """One sentence in the embedding of step k (from 0), word by word."""
    words = [int(w) for w in sentence if w >= 0]
    J, total = len(words), torch.zeros(C, dtype=torch.float64)
    for j, word in enumerate(words, 1):
        for d in range(C):
            total[d] += 2 * ((1 - j / J) - ((d + 1) / C) * (1 - 2 * j / J)) * net.words[s, word, k, d]
    return total


def plain(net, s, sentences, facts, question, linear):
    """Logits and node weights of one question of one seed, by the equations and all sequences of facts."""
    K, places = net.steps, [m for m in range(len(facts)) if facts[m] >= 0]
    age = torch.zeros(len(facts), K + 1, C) if net.ages is None else net.ages[s]
    x = [[embedded(net, s, sentences[facts[m]], k) + age[m, k] for m in places] for k in range(K + 1)]
    q = embedded(net, s, sentences[question], 0)
    node = torch.zeros(K, len(facts), dtype=torch.float64)
    if net.inference == "memn2n":
        for k in range(K):
            scores = torch.stack([fact @ q for fact in x[k]])
            weights = scores if linear else scores.softmax(0)
            node[k, places] = weights
            q = q + sum(w * o for w, o in zip(weights, x[k + 1], strict=True))
        return net.words[s, :, K] @ q, node
    queries = [q]
    for k in range(K - 1):
        last = queries[-1]
        by_facts = net.update is None
        queries.append(sum((x[k][i] @ last) * x[k + 1][i] for i in range(len(places))) if by_facts
                       else net.update[s] @ last)
    n = len(places)
    u = [[float(x[k][i] @ queries[k]) for i in range(n)] for k in range(K)]
    scores = {}
    for z in itertools.product(range(n), repeat=K):
        if net.inference == "unary_crf" or K == 1:
            scores[z] = sum(u[k][z[k]] for k in range(K))
            continue
        score = u[0][z[0]] + u[-1][z[-1]] if net.end_potentials else 0.0
        for k in range(K - 1):
            pair = u[k][z[k]] + float(x[k][z[k]] @ x[k + 1][z[k + 1]]) + u[k + 1][z[k + 1]]
            score += -torch.inf if z[k] == z[k + 1] else pair
        scores[z] = score
    total = torch.tensor(list(scores.values()), dtype=torch.float64).logsumexp(0)
    for z, score in scores.items():
        if score > -torch.inf:
            for k in range(K):
                node[k, places[z[k]]] += (score - total).exp()
    context = sum(node[k, places[i]] * x[k + 1][i] for k in range(K) for i in range(n))
    return net.words[s, :, K] @ (queries[-1] + context), node


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize(("inference", "options"), [
    *((inference, {}) for inference in INFERENCE),
    ("memn2n", {"no_temporal_encoding": True}),
    ("binary_crf", {"query_update": "facts"}),
    ("binary_crf", {"end_potentials": True}),
    ("unary_crf", {"query_update": "facts", "no_temporal_encoding": True}),
])
def test_the_equations_over_all_sequences_of_facts(inference, options, steps, linear, generator):
    net = network(inference, steps, **options)
    sentences, facts, question = batch(generator)
    with torch.no_grad():
        found = net(sentences, facts, question, linear)
        node = found.node.view(2, 3, steps, -1)
        for s, b in itertools.product(range(2), range(3)):
            answer, weights = plain(net, s, sentences, facts[s, b], question[s, b], linear)
            torch.testing.assert_close(node[s, b], weights)
            torch.testing.assert_close(found.answer[s, b], answer)


@pytest.mark.parametrize("query_update", ["linear", "facts"])
def test_a_unary_crf_chains_facts_only_where_they_make_the_query(query_update, generator):
    """Odds between two facts, asked for after another fact is changed: with q^(k+1) = Q q^k they stay as they are."""
    net = network("unary_crf", 3, deviation=0.3, query_update=query_update)
    sentences, facts, question = batch(generator)
    facts[:] = torch.tensor([0, 1, 2, 3])
    other = facts.clone()
    other[..., 3] = 4
    with torch.no_grad():
        before, after = (net(sentences, f, question, False).node.log() for f in (facts, other))
    moved = ((before - after)[..., 0] - (before - after)[..., 1]).abs()  # R K
    assert (moved[:, 0] < 1e-9).all()
    assert (moved[:, 1:] < 1e-9).all() if query_update == "linear" else (moved[:, 1:] > 1e-5).all()


@pytest.mark.parametrize("options", [{}, {"query_update": "facts"}, {"end_potentials": True}])
def test_gradients_of_the_binary_crf(options, generator):
    net = network("binary_crf", 3, deviation=0.3, **options)
    names, parameters = zip(*net.named_parameters(), strict=True)
    inputs = (*batch(generator), False)

    def answer(*values):
        return torch.func.functional_call(net, dict(zip(names, values, strict=True)), inputs).answer

    assert torch.autograd.gradcheck(answer, parameters, fast_mode=True)


def test_one_fact_leaves_the_binary_crf_without_a_sequence(generator):
    net = network("binary_crf", 2)
    sentences, facts, question = batch(generator)
    found = net(sentences, facts, question, False)
    assert found.node.view(2, 3, 2, -1)[1, 2].abs().sum() == 0
    found.answer.sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())


def test_position_encoding_averages_to_one(generator):
    sentences = torch.tensor([[0, 1, 2, 3], [4, 4, -1, -1], [-1, -1, -1, -1]])
    first, second = bags_of_words(sentences, 5, torch.float64)
    weights = torch.stack([first + depth * second for depth in torch.arange(1, 21, dtype=torch.float64) / 20])
    assert weights[:, 2].abs().sum() == 0
    torch.testing.assert_close(weights[19, 0, :4], torch.tensor([0.5, 1.0, 1.5, 2.0], dtype=torch.float64))
    assert weights[:, 1, :4].abs().sum() == 0


@pytest.mark.parametrize(("change", "message"), [
    ({"steps": 0}, "steps: expected 1 or more, got 0"),
    ({"initialization_deviation": 0.0}, "initialization_deviation: expected more than 0"),
    ({"query_update": "facts"}, "query_update: facts is for the CRFs"),
    ({"inference": "unary_crf", "end_potentials": True}, "end_potentials: only the binary CRF has them"),
])
def test_what_is_out_of_range_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        MemoryNetwork(MemoryNetworkConfig(**change), V, 6, [torch.Generator()])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("babi")
    for split in ("train", "test"):
        (folder / f"qa19_{TASKS[19]}_{split}.txt").write_text(STORY * 12, encoding="utf-8")
    write_folder(folder, 19, folder / "task")
    return folder / "task"


def train(data, folder, arch, *options):
    fairseq(
        "train", data, "--task", "babi_qa", "--criterion", "babi_qa", "--arch", arch, "--optimizer", "sgd", "--lr", 0.5,
        "--lr-scheduler", "fixed", "--batch-size", 5, "--max-epoch", 3, "--linear-start", 1, "--update-epoch-batch-itr",
        "True", "--save-dir", folder, "--no-epoch-checkpoints", "--renormalize", 1, *options,
    )
    return torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]


@pytest.mark.training
@pytest.mark.parametrize(("arch", "options"), [
    ("memn2n", ()), ("memory_binary_crf", ()),
    ("memory_unary_crf", ("--query-update", "facts", "--no-temporal-encoding")),
])
def test_seeds_trained_as_one_are_those_trained_alone(arch, options, data, tmp_path):
    together = train(data, tmp_path / "all", arch, "--seeds", 3, "--first-seed", 4, *options)
    for place, seed in enumerate((4, 5, 6)):
        alone = train(data, tmp_path / str(seed), arch, "--seeds", 1, "--first-seed", seed, *options)
        assert together.keys() == alone.keys()
        for name, value in together.items():
            torch.testing.assert_close(value[place], alone[name][0], rtol=1e-4, atol=1e-5)
    first = next(iter(together.values()))
    assert (first[0] - first[1]).abs().max() > 0.01


@pytest.mark.training
def test_learns_saves_and_reports_each_seed(data, tmp_path):
    train(data, tmp_path, "memory_binary_crf", "--seeds", 2, "--max-epoch", 30, "--lr", 0.05, "--renormalize", 40)
    printed = fairseq(
        "validate", data, "--task", "babi_qa", "--criterion", "babi_qa", "--seeds", 2, "--path",
        tmp_path / "checkpoint_last.pt", "--valid-subset", "test", "--report-seeds", "--batch-size", 7, "--log-format",
        "json",
    )
    accuracy = [float(re.search(rf'"test_accuracy_seed_{seed}": "([\d.]+)"', printed)[1]) for seed in (1, 2)]
    assert min(accuracy) > 90
    assert float(re.search(r'"test_accuracy": "([\d.]+)"', printed)[1]) == pytest.approx(sum(accuracy) / 2, abs=1e-3)
    assert "test_fact_accuracy_seed_2" in printed
