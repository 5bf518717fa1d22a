"""Adam over all parameters at once on a GPU."""

import pytest
import torch

from tests.bridge.patches.test_optimization import both

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)


def test_updates_are_fairseqs_within_rounding():
    theirs, ours = both(device="cuda", weight_decay=0.1)
    torch.testing.assert_close(ours.param_groups[0]["params"], theirs.param_groups[0]["params"], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=1e-5, atol=1e-6)
