"""fairseq's commands with the plugin: trained, validated, decoded, scored, resumed, in parallel and in bfloat16."""

from __future__ import annotations

import io
import math
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from seqstruct.bridge.checkpoints import load_checkpoint
from tests.models.front_door import EVERYWHERE, PLUGIN, fairseq, sizes

ROOT = str(Path(PLUGIN).parent)
STACK = "softmax + superposition_stack(size=5)"
SIZES = sizes(dim=12, inner=20, heads=2, layers=2)
TRAIN = [
    "--optimizer", "adam", "--lr", 0.01, "--update-epoch-batch-itr", "True", "--no-epoch-checkpoints", "--dropout", 0.0,
]
TRANSLATE = ["--arch", "structured_transformer", *SIZES, "--max-tokens", 120, "--criterion", "structured_cross_entropy"]


@pytest.fixture(scope="module")
def translator(reversals: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained checkpoint with a stack on both sides."""
    save = tmp_path_factory.mktemp("translator")
    log = fairseq(
        "train", reversals / "bin", *TRAIN, *TRANSLATE, "--encoder-self-attention", STACK, "--decoder-self-attention",
        STACK, "--max-epoch", 6, "--save-dir", save, "--label-smoothing", 0.1,
    )
    losses = [float(loss) for loss in re.findall(r"valid on 'valid' subset.*?nll_loss ([\d.]+)", log)]
    assert len(losses) == 6 and losses[-1] < 0.9 * losses[0]
    return save / "checkpoint_best.pt"


@pytest.mark.training
def test_validate_generate_and_interactive(translator: Path, reversals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = [reversals / "bin", "--path", translator]
    decode = [*options, "--max-len-b", 12]
    log = fairseq("validate", *options, "--task", "translation", "--valid-subset", "test", "--max-tokens", 200)
    assert math.isfinite(float(re.search(r"nll_loss ([\d.]+)", log).group(1)))
    beams = [fairseq("generate", *decode, "--beam", beam, "--max-tokens", 200) for beam in (1, 4)]
    for text in beams:
        assert len(re.findall(r"^D-\d+\t", text, re.MULTILINE)) == 60
    hypotheses = dict(re.findall(r"^H-(\d+)\t(.*)$", beams[1], re.MULTILINE))
    sources = dict(re.findall(r"^S-(\d+)\t(.*)$", beams[1], re.MULTILINE))
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{sources['3']}\n"))
    said = fairseq("interactive", *decode, "--beam", 4, "--source-lang", "de", "--target-lang", "en", "--input", "-")
    assert re.search(r"^H-0\t(.*)$", said, re.MULTILINE).group(1).split("\t")[1] == hypotheses["3"].split("\t")[1]


@pytest.mark.training
@pytest.mark.parametrize("plan", ["sigmoid + softmax", "softmax + nondeterministic_stack(states=2,symbols=2,size=3)"])
def test_language_model_is_trained_and_evaluated(plan: str, reversals: Path, tmp_path: Path) -> None:
    fairseq(
        "train", reversals / "lm", *TRAIN, "--task", "language_modeling", "--arch", "structured_transformer_lm",
        "--decoder-self-attention", plan, *SIZES[8:], "--tokens-per-sample", 16, "--sample-break-mode", "eos",
        "--batch-size", 20, "--max-epoch", 2, "--save-dir", tmp_path,
    )
    common = [reversals / "lm", "--path", tmp_path / "checkpoint_best.pt", "--sample-break-mode", "eos"]
    log = fairseq("eval-lm", *common, "--batch-size", 20)
    assert 1.0 < float(re.search(r"Perplexity: ([\d.]+)", log).group(1)) < 40.0
    text = fairseq(
        "generate", *common, "--task", "language_modeling", "--beam", 2, "--batch-size", 20, "--prefix-size", 1,
        "--max-len-b", 8, "--gen-subset", "test",
    )
    assert len(re.findall(r"^H-\d+\t", text, re.MULTILINE)) == 60


@pytest.mark.training
def test_a_stock_checkpoint_goes_on_with_a_stack(reversals: Path, tmp_path: Path) -> None:
    stock, ours = tmp_path / "stock", tmp_path / "ours"
    common = [*TRAIN, *SIZES, "--max-tokens", 200, "--criterion", "cross_entropy"]
    fairseq("train", reversals / "bin", *common, "--arch", "transformer", "--max-epoch", 1, "--save-dir", stock)
    log = fairseq(
        "train", reversals / "bin", *common, "--arch", "structured_transformer", "--decoder-self-attention", STACK,
        "--finetune-from-model", stock / "checkpoint_best.pt", "--max-epoch", 1, "--save-dir", ours,
    )
    assert "decoder.layers.1.self_attn: what the two share is taken over, the rest starts from initial values" in log
    kept = "decoder.layers.0.encoder_attn.mechanism.k_proj.weight"
    before = load_checkpoint(stock / "checkpoint_best.pt")["model"][kept.replace(".mechanism", "")]
    after = load_checkpoint(ours / "checkpoint_best.pt")["model"][kept]
    assert 0 < (before - after).abs().max() < 0.2


@pytest.mark.training
@pytest.mark.parametrize("precision", [["--bf16"], ["--memory-efficient-bf16"]])
def test_bfloat16_trains(precision: list[str], reversals: Path, tmp_path: Path) -> None:
    log = fairseq(
        "train", reversals / "bin", *TRAIN, *TRANSLATE, *precision, "--encoder-self-attention", STACK,
        "--decoder-self-attention", "nondeterministic_stack(states=2, symbols=2, size=3) + sigmoid",
        "--max-update", 3, "--save-dir", tmp_path,
    )
    assert math.isfinite(float(re.search(r"valid on 'valid' subset.*?\| loss ([\d.]+)", log).group(1)))


@pytest.mark.slow
@pytest.mark.training
def test_two_processes_equal_accumulation_over_four_batches(reversals: Path, tmp_path: Path) -> None:
    """Data-parallel training on the CPU leaves the parameters that gradient accumulation leaves: with 15 batches an
    epoch, so that one process has fewer in the last update, and cut after two updates."""
    common = [
        reversals / "bin", *TRAIN, *TRANSLATE[:-4], "--criterion", "structured_cross_entropy",
        "--decoder-self-attention", STACK, "--batch-size", 4, "--required-batch-size-multiple", 1,
        "--optimizer", "sgd", "--lr", 0.5,  # Adam divides by the size of gradients that rounding alone makes
    ]
    parallel = [
        *EVERYWHERE, *common, "--ddp-backend", "legacy_ddp", "--distributed-backend", "gloo",
        "--distributed-world-size", 2, "--distributed-no-spawn", "--device-id", 0, "--update-freq", 2, "--save-dir",
        tmp_path / "two",
    ]
    for updates in (2, 6):
        place = f"tcp://127.0.0.1:{free_port()}"
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "fairseq_cli.train", *map(str, [
                    *parallel, "--max-update", updates, "--distributed-init-method", place, "--distributed-rank", rank,
                ])],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env={**os.environ, "PYTHONPATH": ROOT, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
            )
            for rank in (0, 1)
        ]
        for worker in workers:
            said, _ = worker.communicate(timeout=300)
            assert worker.returncode == 0, said
    fairseq("train", *common, "--update-freq", 4, "--max-update", 6, "--save-dir", tmp_path / "one")
    one, two = (load_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"] for name in ("one", "two"))
    torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-5)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
