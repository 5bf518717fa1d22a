import torch
import torch.nn.functional as F

from seqstruct.layers.feed_forward import swiglu


def test_swiglu_gates_one_linear_map_by_another(generator):
    x, gate, up, down = (
        torch.randn(*size, generator=generator, dtype=torch.float64) for size in ((5, 3), (7, 3), (7, 3), (3, 7))
    )
    found = swiglu(x @ torch.cat([gate, up]).T) @ down.T
    torch.testing.assert_close(found, (F.silu(x @ gate.T) * (x @ up.T)) @ down.T)
