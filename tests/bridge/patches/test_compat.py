"""What is mended in fairseq, seen through fairseq."""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from fairseq.data import BucketPadLengthDataset, data_utils


@pytest.mark.parametrize("count", [1, 7, 60, 64])
def test_no_index_is_left_out_of_batches(count: int) -> None:
    sizes = np.random.default_rng(3).integers(2, 9, count)
    batches = data_utils.batch_by_size(
        np.arange(count), lambda i: sizes[i], num_tokens_vec=sizes, max_tokens=50, required_batch_size_multiple=8
    )
    assert np.concatenate(batches).tolist() == list(range(count))
    assert all(sizes[batch].max() * len(batch) <= 50 for batch in batches)


def test_numpy_2_has_what_fairseq_reads() -> None:
    assert np.compat.long is int


def test_stock_checkpoints_load_safely(tmp_path) -> None:
    torch.save({"args": argparse.Namespace(arch="transformer")}, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt", weights_only=True)["args"].arch == "transformer"


def test_batch_buckets_are_refused() -> None:
    with pytest.raises(ValueError, match="--num-batch-buckets does not work"):
        BucketPadLengthDataset(None, None, None, None, None)


def test_scripts_keep_their_traceback() -> None:
    code = "compat.prepare_fairseq(); from seqstruct.attention import get_attention; get_attention('rafa')"
    done = subprocess.run(
        [sys.executable, "-c", f"from seqstruct.bridge.patches import compat; {code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback") and "rafa" in done.stderr.strip().splitlines()[-1]


def test_known_noise_is_filtered_and_nothing_else() -> None:
    """fairseq's start warns of deprecations in its own calls; none of that reaches the user, and other warnings do."""
    code = (
        "import warnings; from seqstruct.bridge.patches.compat import prepare_fairseq; prepare_fairseq();"
        "from fairseq.dataclass.utils import convert_namespace_to_omegaconf; from fairseq import options;"
        "parser = options.get_validation_parser();"
        "args = options.parse_args_and_arch(parser, ['x', '--path', 'y', '--task', 'translation']);"
        "convert_namespace_to_omegaconf(args); import torch; torch.cuda.amp.autocast(enabled=False);"
        "warnings.warn('something else', stacklevel=2)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    warned = [line for line in done.stderr.splitlines() if "Warning" in line]
    assert len(warned) == 1 and "something else" in warned[0], done.stderr
    assert "DEBUG" not in done.stderr


def test_known_noise_passes_in_tests_and_any_other_warning_of_ours_is_an_error() -> None:
    torch.cuda.amp.autocast(enabled=False)
    np.copy(torch.zeros(2))
    with pytest.raises(UserWarning, match="of ours"):
        warnings.warn("of ours", stacklevel=1)
