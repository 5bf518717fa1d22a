import pytest
import torch

from seqstruct.ops.short_convolution import short_convolution


@pytest.mark.parametrize("taps", [0, 1, 4, 9])
def test_it_is_torch_s_convolution_with_one_group_a_channel(taps, generator):
    x = torch.randn(3, 13, 5, generator=generator, dtype=torch.float64)
    weight = torch.randn(taps, 5, generator=generator, dtype=torch.float64)
    found = short_convolution(x, weight)
    if taps == 0:
        assert torch.equal(found, torch.zeros(3, 14, 5))
        return
    wanted = torch.nn.functional.conv1d(x.mT, weight.T.unsqueeze(1), groups=5).mT
    torch.testing.assert_close(found, wanted)
