"""Tests that train: all have the mark `training`, and `pytest -m training` prints by how much their assertions hold."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from torch.optim.optimizer import register_optimizer_step_post_hook

LONGEST = 120  # letters of a printed assertion


class Trainings:
    """Fails a test without the mark that takes steps of an optimizer, or uses a fixture that did."""

    def __init__(self) -> None:
        self.steps = 0
        self.trained: set[int] = set()
        register_optimizer_step_post_hook(self._count)

    def _count(self, *_: Any) -> None:
        self.steps += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        before = self.steps
        try:
            return (yield)
        finally:
            if self.steps > before:
                self.trained.add(id(fixturedef))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        before = self.steps
        result = yield
        used = {id(definition) for found in _fixtures(item).values() for definition in found}
        if (self.steps > before or used & self.trained) and item.get_closest_marker("training") is None:
            pytest.fail(f"{item.nodeid} takes steps of an optimizer, and lacks the mark training", pytrace=False)
        return result


def _fixtures(item: Any) -> dict[str, Any]:
    """Definitions by name; none of items that are no functions."""
    info = getattr(item, "_fixtureinfo", None)
    return info.name2fixturedefs if info else {}


class Margins:
    """Prints the assertions that compare sizes, with the values that they found."""

    def pytest_assertion_pass(self, item: pytest.Item, lineno: int, orig: str, expl: str) -> None:
        if not {"<", ">"} & set(orig):
            return
        name, found = f"margin {item.nodeid}:{lineno}", expl.partition("\n")[0][:LONGEST]
        rest = [pair for pair in item.user_properties if pair[0] != name]  # of a loop the last time
        item.user_properties[:] = [*rest, (name, f"{orig[:LONGEST]}: {found}")]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("margins of trainings")
        for outcome in ("passed", "failed"):
            for report in terminalreporter.getreports(outcome):
                for name, text in report.user_properties:
                    if name.startswith("margin "):
                        terminalreporter.write_line(f"{name}  {text}")


def register(config: pytest.Config) -> None:
    """The watch always; the margins, for which every assertion is written out, with `-m training` alone."""
    config.pluginmanager.register(Trainings(), "trainings")
    if "training" in config.option.markexpr:
        config.pluginmanager.register(Margins(), "margins")
