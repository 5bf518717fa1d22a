"""The same numbers as supar (Zhang et al. 2020) over dependency trees; where it is not installed, skipped."""

from __future__ import annotations

import pytest
import torch

from seqstruct import distributions as D

theirs = pytest.importorskip("supar.structs", reason="supar is not installed")
CASES = [(D.ProjectiveTree, "DependencyCRF"), (D.NonProjectiveTree, "MatrixTree")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("ours, name", CASES, ids=["projective", "all"])
def test_log_partition_entropy_and_divergence(generator, ours, name, single_root):
    lengths = torch.tensor([5, 2, 4])
    arcs, others = torch.randn(2, 3, 6, 6, generator=generator, dtype=torch.float64).requires_grad_()
    p, q = (ours(x, lengths=lengths, single_root=single_root) for x in (arcs, others))
    other = getattr(theirs, name)
    r, s = (other(x.transpose(1, 2).contiguous(), lengths, multiroot=not single_root) for x in (arcs, others))
    exact = ours is D.ProjectiveTree  # of all trees supar gives float32
    close = {**dict.fromkeys(("rtol", "atol"), 1e-9 if exact else 1e-5), "check_dtype": exact}
    torch.testing.assert_close(p.log_partition(), r.log_partition, **close)
    torch.testing.assert_close(p.entropy(), r.entropy, **close)
    torch.testing.assert_close(p.kl_divergence(q), r.kl(s), **close)
