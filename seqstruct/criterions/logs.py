"""What criterions share when they reduce the logs of batches and workers."""

from typing import Any, Dict, List

from fairseq.criterions import FairseqCriterion


class SummedCriterion(FairseqCriterion):
    """A criterion whose logs are numbers or tensors of one shape, in the same places in all workers."""

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def summed(logging_outputs: List[Dict[str, Any]]) -> Dict[str, float]:
    """The sum of each figure over all logs that have it."""
    sums: Dict[str, float] = {}
    for log in logging_outputs:
        for name, value in log.items():
            sums[name] = sums.get(name, 0.0) + float(value)
    return sums
