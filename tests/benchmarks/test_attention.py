"""`seqstruct bench attention`, `bench decode` and `bench encode` run; how long things take is not tested."""

from __future__ import annotations

import types

import pytest
import torch

from seqstruct.benchmarks import attention, decode, encode, peers
from seqstruct.benchmarks.timing import Place
from seqstruct.cli import main
from seqstruct.ops.delta import naive

HERE = Place.of("cpu", "float32")


@pytest.fixture()
def tiny(monkeypatch) -> None:
    for module in (attention, decode):
        for name, value in {"BATCH": 2, "HEADS": 2, "DIM": 4}.items():
            monkeypatch.setattr(module, name, value)
    for name, value in {"LAYERS": 2, "MODEL": 8, "HEADS": 2, "FEED_FORWARD": 8, "WORDS": 12}.items():
        monkeypatch.setattr(decode, name, value)


def test_training_has_a_row_for_each_attention(tiny, capsys, tmp_path) -> None:
    path = tmp_path / "curves.png"
    assert main(["bench", "attention", "--lengths", "1", "7", "--repeats", "1", "--plot", str(path)]) == 0
    printed = capsys.readouterr().out
    for name in attention.cases(1, HERE):
        assert sum(line.startswith(name + "  ") for line in printed.splitlines()) == 2
    assert path.stat().st_size > 1000


def test_gradients_reach_everything(tiny) -> None:
    for outputs, leaves in attention.cases(40, HERE).values():
        gradients = torch.autograd.grad(outputs().square().sum(), leaves)
        assert all(bool(gradient.abs().sum() > 0) for gradient in gradients)


def test_decoding_has_a_row_for_each_attention(tiny, capsys, tmp_path) -> None:
    path = tmp_path / "curves.png"
    assert main(["bench", "decode", "--lengths", "2", "5", "--repeats", "1", "--plot", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(decode.CACHE + "  ") for line in lines) == 2
    for name in (*decode.PLANS, decode.LIMIT):
        assert sum(line.startswith(name + "  ") for line in lines) == 4
    for section in decode.SECTIONS:
        assert (tmp_path / f"curves-{section}.png").stat().st_size > 1000


def test_encoding_has_a_row_for_each_attention(monkeypatch, capsys) -> None:
    for name, value in {"BATCH": 2, "MODEL": 8, "HEADS": 2, "FEED_FORWARD": 8}.items():
        monkeypatch.setattr(encode, name, value)
    assert main(["bench", "encode", "--lengths", "3", "--repeats", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in encode.layers(3):
        assert sum(line.startswith(name + "  ") for line in lines) == 1


def test_a_prefix_fills_the_states_of_all_attentions(tiny) -> None:
    built = decode.decoder(("abc_mlp(slots=3)", "abc_mlp(slots=2)"), True, 5, HERE)
    prefix = decode.Prefix(built, 5, HERE)
    with torch.no_grad():
        assert prefix.step().shape == (2, 1, 12)
        assert len(prefix.states()) == 4
        assert all(int(saved.memory.key.size(0)) == 2 for saved in prefix.states())


def test_only_a_beam_reorders(tiny, monkeypatch) -> None:
    built = decode.decoder(("softmax", "softmax"), True, 5, HERE)
    orders = []
    monkeypatch.setattr(built, "reorder_incremental_state_scripting", lambda _, order: orders.append(order))
    with torch.no_grad():
        decode.Prefix(built, 5, HERE).step()
        assert orders == []
        decode.Prefix(built, 5, HERE, reorder=True).step()
    assert [tuple(order.shape) for order in orders] == [(2,)]


def test_what_is_missing_is_refused(tiny, capsys) -> None:
    for command, message in (
        (["attention", "--lengths", "0"], "lengths of 1 or more"),
        (["decode", "--lengths", "0"], "2 or more"),
        (["decode", "--sections", "cache"], "no section cache"),
        (["attention", "--sections", "step"], "no option --sections"),
    ):
        assert main(["bench", *command]) == 1
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(("name", "timer"), [("attention", "measure"), ("decode", "turns")])
def test_a_picture_that_cannot_be_is_refused_before_anything_is_timed(
    tiny, monkeypatch, refused, tmp_path, name, timer
) -> None:
    timed = []
    monkeypatch.setattr({"attention": attention, "decode": decode}[name], timer, lambda *_, **__: timed.append(1) or {})
    for plot in ("curves.txt", "curves", "./curves"):
        told = refused("bench", name, "--plot", plot, "--lengths", "2", "--repeats", "1")
        assert f"{plot}: expected a name that ends in .png" in told
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    for plot, said in (("file/x.png", f"{tmp_path / 'file'} is no folder"), ("folder.png", "is a folder")):
        told = refused("bench", name, "--plot", tmp_path / plot, "--lengths", "2", "--repeats", "1")
        assert f"{tmp_path / plot}: {said}" in told
    assert not timed


def test_peers_of_the_delta_rule_are_asked_for_the_same(tiny, monkeypatch) -> None:
    """A peer with the recurrence, in its layout and with its names of options, gives our numbers but for the scale."""

    def rule(query, key, value, g, beta, use_qk_l2norm_in_kernel):
        assert use_qk_l2norm_in_kernel
        query, key, value, g, beta = (x.transpose(1, 2).double() for x in (query, key, value, g, beta))
        query, key = (x / x.norm(dim=-1, keepdim=True) for x in (query, key))
        readings, _ = naive.gated_delta_rule(query * query.size(-1) ** -0.5, key, value, g, beta)
        return readings.transpose(1, 2).float(), None

    fake = types.SimpleNamespace(torch_chunk_gated_delta_rule=rule)
    monkeypatch.setattr(peers, "peer", lambda name: fake if name == "transformers" else None)
    found = attention.cases(9, HERE)
    ours, theirs = (found[name][0]() for name in ("gated_delta", "Hugging Face, gated_delta"))
    torch.testing.assert_close(ours * attention.DIM**-0.5, theirs, rtol=1e-4, atol=1e-5)


def test_flash_linear_attention_is_asked_for_the_same(tiny) -> None:
    """Stand-ins that compute by definition, with its names and in its layout, give our numbers in half precision."""

    def rule(q, k, v, g=None, beta=None, use_qk_l2norm_in_kernel=False):
        assert all(x.dtype == torch.bfloat16 and x.shape[:3] == q.shape[:3] for x in (k, v, g, beta) if x is not None)
        q, k, v, g, beta = (None if x is None else x.transpose(1, 2).double() for x in (q, k, v, g, beta))
        if use_qk_l2norm_in_kernel:
            q, k = (x / x.norm(dim=-1, keepdim=True) for x in (q, k))
        return naive.gated_delta_rule(q, k, v, g, beta)[0].transpose(1, 2).bfloat16(), None

    def linear(q, k, v):
        total = rule(q, k, torch.ones_like(v[..., :1]))[0]
        return rule(q, k, v)[0] / total, None

    def retention(q, k, v):
        decay = torch.log1p(-(2.0 ** (-5 - torch.arange(q.size(2))))).expand(q.shape[:3])
        return rule(q, k, v, decay.bfloat16())

    def slots(q, k, v, s, g):
        q, k, v, s, g = (x.transpose(1, 2).float() for x in (q, k, v, s, g))
        memory = q.new_zeros(*q.shape[:2], s.size(-1), 2 * q.size(-1))
        return attention.gated_slots(q, k, v, s, g, memory)[0].transpose(1, 2), None

    fla = types.SimpleNamespace(
        chunk_linear_attn=linear, chunk_delta_rule=lambda q, k, v, beta, **o: rule(q, k, v, None, beta, **o),
        chunk_gated_delta_rule=rule, chunk_kda=rule, chunk_gla=rule, chunk_retention=retention,
        chunk_simple_gla=rule, chunk_gsa=slots,
    )
    leaves = [attention.draw(seed, 2, 2, 9, 4) for seed in (1, 2, 3)]
    drawn = [attention.draw(seed, 2, 2, 9, *more) for seed, more in ((11, ()), (12, ()), (13, (4,)), (14, (32,)))]
    theirs = attention.flash_cases(fla, leaves, *drawn)
    ours = attention.cases(9, HERE)
    assert len(theirs) == 8
    for name, (outputs, given) in theirs.items():
        expected, found = ours[name.split(", ", 1)[1].rpartition(", ")[0]][0](), outputs()
        torch.testing.assert_close(found, expected, rtol=0.1, atol=0.1)
        assert all(bool(grad.abs().sum() > 0) for grad in torch.autograd.grad(found.sum(), given))
