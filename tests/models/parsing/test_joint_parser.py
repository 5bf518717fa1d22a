"""joint_parser: which parameters each surrogate trains, what is refused, and training through fairseq's commands."""

import json
import re
import types

import pytest
import torch

import seqstruct.tasks  # noqa: F401  registers what the front door needs
from seqstruct.data.parsing.folder import write_folder
from seqstruct.models.parsing.joint_parser import JointParser, JointParserConfig
from seqstruct.tasks.joint_parsing import JointParsingConfig, JointParsingTask
from tests.data.parsing.corpora import corpus
from tests.models.front_door import fairseq

SIZES = dict(word_dim=6, lemma_dim=3, tag_dim=3, lstm_size=5, lstm_layers=1, mlp_size=7, role_dim=4,
             classifier_lstm_size=5, classifier_mlp_size=6, classifier_dropout=0.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Trees, two formalisms and classes."""
    path = tmp_path_factory.mktemp("parsing") / "data"
    write_folder(
        {"trees": corpus("trees"), "dm": corpus("graphs", 2), "psd": corpus("graphs", 4), "sst": corpus("classes", 3)},
        path,
    )
    return path


def built(folder, corpora, **options):
    task = JointParsingTask.setup_task(JointParsingConfig(data=str(folder), corpora=corpora, word_dropout=0.0))
    task.load_dataset("train")
    torch.manual_seed(1)
    model = JointParser.build_model(JointParserConfig(**{**SIZES, **options}), task).double()
    data = task.dataset("train")
    return task, model, data.collater([data[i] for i in range(0, len(data), 9)])


def criterion(task):
    from seqstruct.criterions.joint_parsing import JointParsingCriterion

    return JointParsingCriterion(task, "hinge")


def trained_by_the_end_task(folder, corpora, end, **options):
    """Whether the loss of one corpus reaches the intermediate parser's scorer."""
    task, model, sample = built(folder, corpora, **options)
    sample["net_input"]["batches"] = {end: sample["net_input"]["batches"][end]}
    loss, _, _ = criterion(task)(model, sample)
    loss.backward()
    scorer = model.graph_scorers["dm"].labels if model.intermediate == "graph" else model.tree_arcs
    return any(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in scorer.parameters())


@pytest.mark.parametrize(
    "gradient, reaches", [("pipeline", False), ("ste", True), ("spigot", True), ("marginal", True)]
)
def test_which_gradients_reach_the_tree_parser(folder, gradient, reaches):
    found = trained_by_the_end_task(folder, "trees,dm", "dm", intermediate="tree", gradient=gradient)
    assert found is reaches
    latent = trained_by_the_end_task(folder, "sst", "sst", intermediate="tree", gradient=gradient)
    assert latent is reaches


@pytest.mark.parametrize("gradient, reaches", [("pipeline", False), ("ste", True), ("spigot", True)])
def test_which_gradients_reach_the_graph_parser(folder, gradient, reaches):
    assert trained_by_the_end_task(folder, "dm,sst", "sst", intermediate="graph", gradient=gradient) is reaches


@pytest.mark.parametrize("gradient", ["ste", "spigot"])
def test_arcs_that_no_graph_has_get_no_gradient(folder, gradient):
    task, model, sample = built(folder, "dm,sst", intermediate="graph", gradient=gradient)
    batch = sample["net_input"]["batches"]["sst"]
    found = model.parse_graphs(batch["tokens"], batch["padding_mask"], name="dm")
    parts = model._graph_parts(found)
    weights = torch.randn(parts.shape, generator=torch.Generator().manual_seed(1))
    for grad in torch.autograd.grad((parts * weights).sum(), [found.arcs, found.labels]):
        inside = found.possible[..., 1:].any(-1)
        assert not grad[~inside].any() and grad[inside].any() and not inside.all()


def test_the_end_task_sees_heads(folder):
    """Eq. 2.7: the scores of a graph depend on the tree, word by word, through the state of the head."""
    task, model, sample = built(folder, "trees,dm", intermediate="tree", gradient="pipeline")
    batch = sample["net_input"]["batches"]["dm"]
    found = model.parse_graphs(batch["tokens"], batch["padding_mask"], name="dm")
    states = model.graph_encoders["dm"](batch["tokens"], batch["padding_mask"])
    heads = model.best("trees", found.trees, batch["padding_mask"])
    rows = torch.arange(len(heads)).unsqueeze(1)
    of_heads = torch.zeros_like(states)
    of_heads[:, 1:] = states[rows, heads.clamp(min=0)] * (heads >= 0).unsqueeze(-1)
    expected = model.graph_scorers["dm"].arcs(torch.cat([states, of_heads], -1)).squeeze(-1)
    torch.testing.assert_close(found.arcs, expected)


def test_all_formalisms_share_an_encoder(folder):
    task, model, sample = built(folder, "dm,psd", shared_encoder=True)
    loss, size, log = criterion(task)(model, sample)
    loss.backward()
    assert size == log["sentences_dm"] + log["sentences_psd"]
    assert all(p.grad is not None for p in model.parameters())


def test_the_pruner_leaves_out_arcs(folder):
    task, model, sample = built(folder, "dm", prune_below=0.4)
    batch = sample["net_input"]["batches"]["dm"]
    found = model.parse_graphs(batch["tokens"], batch["padding_mask"], name="dm")
    kept = found.pruner.sigmoid() >= 0.4
    assert not (found.possible.any(-1) & ~kept).any() and found.possible.any()
    loss, _, _ = criterion(task)(model, sample)
    assert loss.isfinite()


def test_the_classifier_s_embeddings_have_a_dropout_of_their_own(folder):
    """Appendix C.1.2: of word embeddings, not of the LSTM; the parser's are others'."""
    for options, rates in (({}, (0.3, 0.3)), ({"classifier_embedding_dropout": 0.5}, (0.5, 0.0))):
        _, model, _ = built(folder, "dm,sst", intermediate="graph", dropout=0.3, **options)
        encoder, parser = model.classifier.encoder, model.graph_encoders["dm"]
        assert (encoder.dropout.p, encoder.state_dropout.p) == rates
        assert (parser.dropout.p, parser.state_dropout.p) == (0.3, 0.3)


def test_a_batch_is_its_sentences(folder):
    task, model, sample = built(folder, "trees,dm,sst", intermediate="graph", gradient="spigot")
    model.eval()
    data = task.dataset("train")
    whole, _, log = criterion(task)(model, sample)
    alone = [criterion(task)(model, data.collater([data[int(i)]]))[0] for i in sample["id"]]
    torch.testing.assert_close(whole, torch.stack(alone).sum())
    assert {"tree_words", "graph_gold", "class_sentences"} <= set(log)


@pytest.mark.parametrize(
    "corpora, options, message",
    [
        ("trees", dict(intermediate="tree"), "expected a folder with graphs or classes"),
        ("dm", dict(intermediate="graph"), "expected a folder with graphs and classes"),
        ("dm,sst", dict(intermediate="graph", gradient="marginal"), "not tractable"),
        ("dm", dict(shared_encoder=True), "two formalisms or more, got 1"),
        ("dm", dict(prune_below=1.0), "a probability in \\[0, 1\\), got 1.0"),
        ("trees", dict(mlp_size=0), "mlp_size: expected 1 or more, got 0"),
        ("dm,sst", dict(intermediate="graph", role_dim=0), "role_dim: expected 1 or more, got 0"),
        ("trees", dict(lemma_dim=-1), "lemma_dim: expected 0 or more, got -1"),
        ("trees", dict(dropout=1.0), "dropout: expected 0 or more and below 1, got 1.0"),
        ("sst", dict(classifier_embedding_dropout=-0.1), "classifier_embedding_dropout: expected 0 or more"),
        ("dm,sst", dict(intermediate="graph", step_size=-1.0), "step_size: expected a number above 0, got -1.0"),
    ],
)
def test_refused(folder, corpora, options, message):
    with pytest.raises(ValueError, match=message):
        built(folder, corpora, **options)


def test_an_unknown_corpus_is_refused(folder):
    with pytest.raises(ValueError, match="--corpora: expected some of trees, dm, psd, sst, got pas"):
        built(folder, "pas")


def test_words_are_dropped_in_training_alone(folder):
    """fairseq-validate --valid-subset train reads the training set, too, and all of its words."""
    task = JointParsingTask.setup_task(JointParsingConfig(data=str(folder), corpora="trees", word_dropout=30.0, seed=1))
    task.load_dataset("train")
    sample = task.dataset("train").collater([task.dataset("train")[i] for i in range(9)])
    seen = []

    def criterion(model, sample):
        seen.append(sample["net_input"]["batches"]["trees"]["tokens"])
        return torch.zeros(()), 9, {}

    stub = types.SimpleNamespace(**dict.fromkeys(("train", "eval", "set_num_updates", "backward"), lambda *_: None))
    task.train_step(sample, stub, criterion, stub, 0)
    task.valid_step(sample, stub, criterion)
    (trained, read), dropped = seen, sample["net_input"]["batches"]["trees"]["dropped"]
    assert dropped.any() and not (read[:, 0] == task.dictionary.unk()).any()
    assert torch.equal(trained[:, 0], read[:, 0].masked_fill(dropped, task.dictionary.unk()))
    assert torch.equal(trained[:, 1:], read[:, 1:])


@pytest.mark.training
def test_trained_and_validated_by_the_commands(folder, tmp_path):
    sizes = [word for name, value in SIZES.items() for word in (f"--{name.replace('_', '-')}", value)]
    common = ["--task", "joint_parsing", "--criterion", "joint_parsing", "--log-format", "json"]
    printed = fairseq(
        "train", folder, *common, "--corpora", "trees,dm", "--arch", "joint_parser_small", *sizes, "--dropout", 0.0,
        "--intermediate", "tree", "--optimizer", "adam", "--lr", 0.01, "--clip-norm", 5, "--batch-size", 8,
        "--max-epoch", 12, "--best-checkpoint-metric", "labeled_f1", "--maximize-best-checkpoint-metric",
        "--update-epoch-batch-itr", "True", "--save-dir", tmp_path, "--no-epoch-checkpoints",
    )
    losses = [json.loads(line)["train_loss"] for line in re.findall(r'\{"epoch": \d+, "train_loss".*\}', printed)]
    assert float(losses[-1]) < 0.5 * float(losses[0])
    shown = fairseq("validate", folder, *common, "--path", tmp_path / "checkpoint_best.pt", "--valid-subset", "test",
                    "--batch-size", 8)
    statistics = json.loads(re.findall(r'\{[^{}]*"test_uas[^{}]*\}', shown)[-1])
    assert float(statistics["test_uas"]) > 90 and float(statistics["test_labeled_f1"]) > 80
    assert float(statistics["test_intermediate_uas"]) > 90


def test_a_share_or_word_dropout_out_of_range_is_refused():
    with pytest.raises(ValueError, match="--share-of-others: expected a share in \\(0, 1\\], got 0"):
        JointParsingTask.setup_task(JointParsingConfig(data="x", share_of_others=0.0))
    for rate in (-0.5, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"--word-dropout: expected a finite number, 0 or more, got {rate}"):
            JointParsingTask.setup_task(JointParsingConfig(data="x", word_dropout=rate))


def test_parsers_are_taken_from_another_model(folder):
    _, alone, _ = built(folder, "dm")
    _, joint, _ = built(folder, "dm,sst", intermediate="graph")
    for parameter in alone.parameters():
        torch.nn.init.constant_(parameter, 0.25)
    joint.take_parsers(alone.state_dict(), "alone.pt")
    for name, value in joint.state_dict().items():
        assert (value == 0.25).all() != name.startswith("classifier."), name
    _, wide, _ = built(folder, "dm", mlp_size=9)
    with pytest.raises(ValueError, match="alone.pt: .* has the shape .*, expected"):
        wide.take_parsers(alone.state_dict(), "alone.pt")
    with pytest.raises(ValueError, match="sst.pt: expected a parser of this model"):
        alone.take_parsers({"classifier.x": torch.zeros(1)}, "sst.pt")
