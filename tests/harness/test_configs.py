"""Which files a command composes, and in what order."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from seqstruct.harness.configs import composer, read_config, said_last


@pytest.fixture
def words(tmp_path):
    """The words of a command, whose configs lie in conf/."""
    for name, text in {
        "train": "defaults: [_self_, scale: small, row: null]\ncommon: {log_interval: 3, seed: 1}",
        "scale/small": "# @package _global_\ncommon: {seed: 2}\noptimization: {max_epoch: 5}",
        "scale/short": "# @package _global_\ndefaults: [small, _self_]\noptimization: {max_epoch: 10}",
        "scale/bare": "# @package _global_\n# as published",
        "scale/plain": "# @package _global_\ndefaults: [small]\noptimization: {max_epoch: 20}",
    }.items():
        path = tmp_path / "conf" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return ["train", "--config-dir", "conf", "--config-name", "train"]


@pytest.mark.parametrize("scale, files", [
    ((), ["train", "scale/small"]), (("scale=short",), ["train", "scale/small", "scale/short"]),
    (("scale=plain",), ["train", "scale/small", "scale/plain"]),
])
def test_each_file_comes_before_what_overrides_it(words, tmp_path, scale, files):
    found = read_config(tmp_path, [*words, *scale])["files"]
    assert [name.removesuffix(".yaml") for name in found] == files
    merged = OmegaConf.merge(*found.values())
    composed = composer(tmp_path / "conf", "train")(scale)
    for group, settings in (("common", ["log_interval", "seed"]), ("optimization", ["max_epoch"])):
        assert [composed[group][name] for name in settings] == [merged[group][name] for name in settings]


@pytest.mark.parametrize("scale, epochs", [((), 5), (("scale=short",), 10), (("scale=bare",), None)])
def test_the_last_file_that_says_something_decides(words, tmp_path, scale, epochs):
    config = read_config(tmp_path, [*words, *scale])
    assert said_last(config, "optimization", "max_epoch") == epochs
    assert said_last(config, "common", "log_interval") == 3
    assert said_last(None, "common", "seed") is None


def test_hydra_s_own_errors_are_one_sentence(words, tmp_path):
    told = "Could not find 'scale/huge' Available options in 'scale': bare plain short small$"
    with pytest.raises(ValueError, match=told):
        composer(tmp_path / "conf", "train")(["scale=huge"])


def test_what_names_no_config_or_none_that_is_there(words, tmp_path):
    assert read_config(tmp_path, words[:3]) is None
    with pytest.raises(ValueError, match=r"huge\.yaml: no such file"):
        read_config(tmp_path, [*words, "scale=huge"])
