"""Laws of every registered mechanism in slots that ask for rotary positions, grouped heads, norms, no biases and short
convolutions: parallel = step by step for any two of these, the other laws where all are asked for that it takes."""

from __future__ import annotations

import pytest
import torch

from seqstruct.testing import test_laws, test_laws_range
from seqstruct.testing.cases import LENGTH, Case
from seqstruct.testing.test_laws import (  # noqa: F401
    test_a_fully_padded_row_reads_zeros,
    test_adapter_goes_on_from_rows_in_another_order,
    test_adapter_step_by_step_equals_teacher_forcing,
    test_an_empty_batch,
    test_one_step_selects_writes_and_reads,
    test_padding_is_invisible,
    test_padding_that_was_written_is_invisible,
    test_rows_of_a_batch_are_independent,
    test_split_anywhere_and_resume,
    test_states_are_reordered_in_the_middle,
    test_steps_without_gradients_are_the_same,
    test_the_empty_sequence,
    test_the_future_is_invisible,
    test_what_stands_at_padding_is_invisible,
)
from seqstruct.testing.test_laws_range import test_half_modules_stay_in_their_type_finite_and_close  # noqa: F401

SLOTS = "full"  # the cases of this module's laws
SLOW = {  # a slot changes little about these
    "test_one_step_selects_writes_and_reads",
    "test_states_are_reordered_in_the_middle",
    "test_half_modules_stay_in_their_type_finite_and_close",
    "test_bfloat16_autocast_stays_finite_and_close",
}


@pytest.mark.law(streaming=True, slots="each")
def test_parallel_equals_step_by_step(case: Case, generator: torch.Generator) -> None:
    test_laws.test_parallel_equals_step_by_step(case, LENGTH, generator)


@pytest.mark.law()
def test_bfloat16_autocast_stays_finite_and_close(case: Case, generator: torch.Generator) -> None:
    if case.name not in test_laws_range.CHOOSING:  # those put a key elsewhere for a rounding's sake
        test_laws_range.test_bfloat16_autocast_stays_finite_and_close(case, generator)
