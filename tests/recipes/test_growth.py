"""How attention and stacks grow with the length: what the pages say of tables that were measured on two processors."""

from __future__ import annotations

import math

from tests.recipes.test_findings import finding, lines


def test_growth_is_told_as_recorded():
    found = {(line.row, line.metric.removesuffix("_exponent")): sorted(line.values.values()) for name in ("4.1", "5.2")
             for line in lines("peng_thesis", name)}
    item = finding("peng_thesis", "*Growth*")
    one_step = found.pop(("reading ABC", "time"))
    linear = [value for (row, what), both in found.items() if what == "time" and "softmax" not in row for value in both]
    told = "({:.2f} to {:.2f}, and one step of reading by {:.2f} to {:.2f} where 0 is said"
    assert told.format(min(linear), max(linear), *one_step) in item
    softmax = {row.removesuffix(" softmax"): both for (row, what), both in found.items()
               if what == "time" and row.endswith("softmax")}
    told = "decoding grows by {:.1f} to {:.1f} across and {:.1f} to {:.1f} in causal order at these lengths and all of "
    told += "Table 5.2's by {:.1f} to {:.1f} rather than 2, one step of reading by {:.1f} to {:.1f} rather than 1;"
    of = ("decoding cross", "decoding causal", "overall", "reading")
    assert told.format(*(value for row in of for value in softmax[row])) in item
    training = [value for row, both in softmax.items() if row.startswith("training") for value in both]
    assert f"its training grows by {min(training):.1f} to {max(training):.1f}, where" in item
    memory = {row: both for (row, what), both in found.items() if what == "memory"}
    assert all(0.95 < value < 1.05 for row, both in memory.items() if row.endswith("softmax") for value in both)
    none = {row for row, both in memory.items() if both == [0, 0]}
    assert none == {"writing ABC", "reading ABC", "decoding causal RFA"}
    assert min(min(both) for row, both in memory.items() if row not in none) >= 0.9


def test_cost_of_stacks_is_told_as_recorded():
    item = finding("stack_attention", "*Cost*")
    found = {(line.row, line.metric): sorted(line.values.values()) for name in ("1", "4")
             for line in lines("stack_attention", name)}
    steps = {row: found[row, "operators_exponent"] for row in ("SDPA", "Sup", "Nd")}
    assert all(math.isclose(*both, abs_tol=1e-3) for both in steps.values())
    told = "grow by {:.0f} with softmax and by {:.2f} with the superposition stack, where 0 and 1 are published, and "
    told += "by {:.2f} with the nondeterministic one"
    assert told.format(*(both[0] for both in steps.values())) in item
    told = "superposition stack grows by {:.1f} to {:.1f} (2 is said), the nondeterministic one by {:.1f} to {:.1f}, "
    told += "not yet by 3, and softmax by {:.1f} to {:.1f}."
    assert told.format(*(value for row in ("Sup", "Nd", "SDPA") for value in found[row, "time_exponent"])) in item
    memory = {row: found[row, "memory_exponent"] for row in steps}
    assert min(memory["Sup"] + memory["Nd"]) > 1.85 and all(0.95 < value < 1.05 for value in memory["SDPA"])
