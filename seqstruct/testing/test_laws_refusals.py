"""What every registered mechanism refuses: other sites, masks of another kind, inputs that do not belong together."""

from __future__ import annotations

import pytest
import torch

from seqstruct.attention import Site
from seqstruct.testing.cases import SITES, Case, build, inputs, output


@SITES
def test_another_site_is_refused(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator)
    for site in set(Site) - attention.sites:
        with pytest.raises(ValueError, match=f"{case.name}.*{site.value}"):
            type(attention)(attention.config, attention.shape.__class__.of(site, 6, 2))


@SITES
def test_a_mask_of_another_kind_is_refused(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    with pytest.raises(ValueError, match="padding_mask"):
        output(attention, query, memory, torch.zeros(memory.size(0), memory.size(1) + 1, dtype=torch.bool))
    with pytest.raises(ValueError, match="padding_mask"):
        output(attention, query, memory, torch.zeros(memory.shape[:2]))


@SITES
def test_what_it_has_no_use_for_is_refused(case: Case, generator: torch.Generator) -> None:
    attention = build(case, generator)
    query, memory = inputs(case, generator)
    if not attention.streaming:
        with pytest.raises(ValueError, match=f"{case.name} needs the whole sequence at once"):
            attention(query, memory, memory, state=())
    if not attention.carries:
        with pytest.raises(ValueError, match=f"{case.name} takes nothing"):
            attention(query, memory, memory, carry=query)
    shorter = query[:, 1:] if case.site is not Site.CROSS or attention.left_to_right else query[1:]
    with pytest.raises(ValueError, match=f"{case.name}: expected queries"):
        attention(shorter, memory, memory)
    with pytest.raises(ValueError, match=f"{case.name}: expected values"):
        attention(query, memory, memory[:, 1:])
