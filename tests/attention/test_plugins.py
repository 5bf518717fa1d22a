"""Mechanisms of others: of an installed package and of a file of one's own, in every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seqstruct.attention.plugins import VARIABLE, import_plugins
from tests.models.front_door import EVERYWHERE, sizes

ROOT = Path(__file__).parents[2]
SOURCE = '''"""A mean of all keys (Nobody et al. 2020): nothing is looked for."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from seqstruct.attention import Attention, Reading, Site, option, register_attention


@register_attention("foreign_mean", sites=Site)
class ForeignMean(Attention):
    @dataclass(frozen=True)
    class Config:
        scale: float = option(1.0, above=0)  # what the mean is multiplied by

    class State(NamedTuple):
        value: Tensor
        real: Tensor

    def __init__(self, config, shape):
        super().__init__(config, shape)
        self.out = nn.Linear(shape.value_dim, shape.embed_dim, bias=False)

    def initial_state(self, batch_size):
        like = self.out.weight
        return self.State(like.new_zeros(batch_size, 0, self.shape.value_dim), like.new_zeros(batch_size, 0))

    def write(self, state, key, value, padding_mask=None):
        real = value.new_ones(value.shape[:2]) if padding_mask is None else (~padding_mask).to(value.dtype)
        value = value if padding_mask is None else value.masked_fill(padding_mask.unsqueeze(-1), 0.0)
        return self.State(torch.cat([state.value, value], 1), torch.cat([state.real, real], 1))

    def read(self, state, query, position=None, *, need_weights=False):
        weights = state.real / state.real.sum(1, keepdim=True).clamp_min(1)
        weights = weights.unsqueeze(1).expand(-1, query.size(1), -1)
        output = self.out(self.config.scale * weights @ state.value)
        return Reading(output, weights.unsqueeze(1) if need_weights else None)
'''


def install(folder: Path, source: str = SOURCE) -> None:
    """A package as pip leaves it: a module, and a .dist-info that names it."""
    (folder / "foreign.py").write_text(source)
    info = folder / "foreign_package-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-package\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text("[seqstruct.attention]\nmean = foreign\n")


def environments(folder: Path) -> dict[str, dict[str, str]]:
    """By way, the variables under which processes find the mechanism, which is written into the folder for each."""
    apart = folder / "apart"
    apart.mkdir()
    install(apart)
    (folder / "foreign_mean.py").write_text(SOURCE)
    return {
        "an installed package": {"PYTHONPATH": f"{ROOT}{os.pathsep}{apart}", VARIABLE: ""},
        "a file": {"PYTHONPATH": str(ROOT), VARIABLE: str(folder / "foreign_mean.py")},
    }


def run(found: dict[str, str], *words: object) -> str:
    """What a command of a process of its own says."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, words)], capture_output=True, text=True, env={**os.environ, **found}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout + done.stderr


@pytest.mark.slow
def test_every_command_knows_it(reversals: Path, tmp_path: Path) -> None:
    """Each in turn by the other way: trained from a file, translated by a package, and so on."""
    package, file = environments(tmp_path).values()
    fairseq = reversals / "bin", *EVERYWHERE, "--max-tokens", 200
    plan = "foreign_mean(scale=2)"
    run(
        file, "fairseq_cli.train", *fairseq, "--arch", "structured_transformer", *sizes(heads=2), "--optimizer",
        "adam", "--max-update", 1, "--save-dir", tmp_path, "--encoder-self-attention", plan,
        "--decoder-self-attention", plan, "--cross-attention", plan,
    )
    checkpoint = tmp_path / "checkpoint_last.pt"
    said = run(package, "fairseq_cli.generate", *fairseq, "--path", checkpoint, "--beam", 2, "--max-len-b", 9)
    assert len(re.findall(r"^H-\d+\t", said, re.MULTILINE)) == 60
    listed = run(file, "seqstruct", "list")
    assert run(package, "seqstruct", "list") == listed
    assert "  foreign_mean: A mean of all keys: nothing is looked for\n" in listed
    assert "      scale=1.0  what the mean is multiplied by; above 0\n" in listed
    assert run(file, "seqstruct", "inspect", checkpoint).count("0 foreign_mean(scale=2)") == 3
    picture = tmp_path / "attention.png"
    run(package, "seqstruct", "plot", "attention", checkpoint, "ein haus", "--target", "haus ein", "--out", picture)
    assert picture.stat().st_size > 0


@pytest.mark.slow
def test_the_laws_are_held_against_it(tmp_path: Path) -> None:
    laws = ["pytest", "-p", "seqstruct.testing", "--pyargs", "seqstruct.testing", "-q", "-p", "no:cacheprovider"]
    chosen = ["--rootdir", tmp_path, "--attention", "foreign_mean(scale=2)", "-k", "padding or adapter"]
    said = run(environments(tmp_path)["an installed package"], *laws, *chosen)
    assert re.search(r"^\d{2,} passed", said, re.MULTILINE), said


@pytest.mark.parametrize(
    "source, reason",
    [
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        (SOURCE.replace('"foreign_mean"', '"softmax"'), "ValueError: attention 'softmax' is registered already, by "),
    ],
)
def test_a_broken_package_is_named(
    source: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, source)
    monkeypatch.syspath_prepend(tmp_path)
    whose = r"the package foreign-package 1.5 \(entry point mean, group seqstruct.attention\) does not import: "
    with pytest.raises(ValueError, match=whose + re.escape(reason)):
        import_plugins()
    sys.modules.pop("foreign", None)


@pytest.mark.parametrize("name", ["nothing_of_that_name", "nothing.py"])
def test_what_the_variable_names_and_is_not_there_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, name)
    with pytest.raises(ValueError, match=rf"^{name} \(SEQSTRUCT_PLUGINS\) does not import: \w+NotFoundError: .*{name}"):
        import_plugins()


def test_files_whose_names_differ_in_a_sign_are_both_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in ("a-b.py", "a_b.py", "a b.py")]
    for file in files:
        file.write_text("")
    monkeypatch.setenv(VARIABLE, ":".join(map(str, [*files, files[0]])))
    import_plugins()
    found = [str(module.__file__) for name, module in sys.modules.items() if name.startswith("seqstruct_plugin")]
    assert sorted(file for file in found if file.startswith(str(tmp_path))) == sorted(map(str, files))


def test_what_does_not_import_is_said_in_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seqstruct", "list"], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), VARIABLE: str(tmp_path / "nothing.py")},
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and done.stderr.startswith(f"seqstruct list: {tmp_path}/nothing.py (")
