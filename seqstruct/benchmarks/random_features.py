"""Random features alone (Peng 2022, appendix A.1): `python -m seqstruct.benchmarks.random_features ROW --out FILE`.

ROW is "z = Z", the variance of phi(x) . phi(y) over draws of 64 frequencies at |x - y| / sigma = Z (equation A.1), or
"WAY, N frequencies" or "WAY, mean of the values", how far random feature attention, or the mean, is from the attention
that it estimates, for normal queries and keys of size 64.  A WAY is "unit norm, sigma 1", "unit norm, sigma 2", both
scaled to norm 1, or "equation 4.10", as they are with its factors and sigma 64^-1/4 as in scaled dot-product attention.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch

from seqstruct.command import module_parser, run_module
from seqstruct.data.arguments import SEED
from seqstruct.ops.memory import GaussianMap, empty_memory, gaussian_features, linear_attention, schedule
from seqstruct.scoring.measurement import Measurement, write

FREQUENCIES, DIM, KEYS = 64, 64, 200
WAYS = {"unit norm, sigma 1": (True, 1.0), "unit norm, sigma 2": (True, 2.0), "equation 4.10": (False, DIM**-0.25)}
_ROW = re.compile(rf"z = (?P<z>[\d.]+)|(?P<way>{'|'.join(WAYS)}), (?:(?P<count>\d+) frequencies|mean of the values)")


def measure(row: str, draws: int, seed: int) -> Measurement:
    """The number of a row.  Raises ValueError if it is none, or below two draws."""
    parts = _ROW.fullmatch(row)
    if parts is None or draws < 2:
        raise ValueError(f'expected "z = Z" or "WAY, N frequencies" and two draws or more, got {row!r} and {draws}')
    generator = torch.Generator().manual_seed(seed)
    if parts["z"]:
        return Measurement("variance", variance(float(parts["z"]), draws, generator), "squared kernel")
    value = distance(*WAYS[parts["way"]], int(parts["count"] or 0), generator)
    return Measurement("median_output_error", value, "exact output")


def variance(z: float, draws: int, generator: torch.Generator) -> float:
    """Of phi(x) . phi(y) for sigma 1 and |x - y| = z."""
    x = torch.randn(DIM, generator=generator, dtype=torch.float64)
    step = torch.randn(DIM, generator=generator, dtype=torch.float64)
    both = torch.stack([x, x + z * step / step.norm()])
    found = []
    for part in torch.arange(draws).split(500):
        count = len(part)
        features = gaussian_features(
            both.expand(1, count, 2, DIM),
            torch.randn(count, FREQUENCIES, DIM, generator=generator, dtype=torch.float64),
        )
        found.append((features[0, :, 0] * features[0, :, 1]).sum(-1))
    return float(torch.cat(found).var())


def distance(normed: bool, sigma: float, frequencies: int, generator: torch.Generator) -> float:
    """The median error over the root mean square of the exact output, at 8 heads with draws of their own.

    Without frequencies, that of the mean of the values.
    """
    query, key, value = (torch.randn(1, 8, KEYS, DIM, generator=generator, dtype=torch.float64) for _ in range(3))
    estimate = value.mean(2, keepdim=True)
    if frequencies:
        projection = torch.randn(8, frequencies, DIM, generator=generator, dtype=torch.float64) * sigma
        features = GaussianMap(projection, normed, torch.full((8, DIM), sigma, dtype=torch.float64))
        state = empty_memory(1, 8, 2 * frequencies, DIM, value)
        made, log_scale = features(key)
        plan = schedule(state.level, log_scale, None)
        made = made if plan is None else made * plan.weight.unsqueeze(-1)
        estimate = linear_attention.read(linear_attention.write(state, made, value, plan), features(query)[0])[0]
    if normed:
        query, key = (torch.nn.functional.normalize(x, dim=-1) for x in (query, key))
    exact = (sigma**2 * query @ key.mT).softmax(-1) @ value
    return float((estimate - exact).abs().median() / exact.square().mean().sqrt())


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.benchmarks.random_features", __doc__)
    parser.add_argument("row", metavar="ROW")
    parser.add_argument("--draws", type=int, default=20000, metavar="N", help="of a variance (default: 20000)")
    parser.add_argument("--seed", type=SEED, default=1, metavar="N")
    parser.add_argument("--out", required=True, metavar="FILE", help="for `seqstruct record`")
    return run_module(parser, argv, lambda args: write(args.out, [measure(args.row, args.draws, args.seed)]))


if __name__ == "__main__":
    raise SystemExit(main())
