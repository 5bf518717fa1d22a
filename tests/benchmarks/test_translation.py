"""The benchmark of translation runs at a tiny size and prints all its rows."""

from __future__ import annotations

from seqstruct.benchmarks import translation
from seqstruct.benchmarks.timing import Place


def test_rows(monkeypatch):
    for name, value in (("SIZE", 8), ("BATCH", 3), ("VOCABULARY", 20), ("BEAM", 2)):
        monkeypatch.setattr(translation, name, value)
    monkeypatch.setitem(translation.MODELS["GRU, additive, previous state"], "maxout_size", 8)
    text = translation.run([4], 1)
    for names, rows in (((translation.FAIRSEQ, *translation.MODELS), 2), (translation.PRODUCTS, 1)):
        for name in names:
            assert sum(line.startswith(f"{name}  ") for line in text.splitlines()) == rows


def test_every_search_takes_as_many_steps_as_the_source_has_symbols(monkeypatch):
    for name, value in (("SIZE", 8), ("BATCH", 3), ("VOCABULARY", 20), ("BEAM", 2)):
        monkeypatch.setattr(translation, name, value)
    task = translation.made_up_task(f"w{number}" for number in range(20 - translation.SPECIAL))
    models = {translation.FAIRSEQ: translation.fairseq_model(task), "own": translation.own_model(task)}
    steps = {}
    for name, model in models.items():

        def forward(*given, name=name, whole=model.decoder.forward, **more):
            steps[name] += 1
            return whole(*given, **more)

        monkeypatch.setattr(model.decoder, "forward", forward)
    for length in (2, 5):
        steps |= dict.fromkeys(models, 0)
        source = translation.sentences(1, length)
        translation.decoding(models, task.target_dictionary, source, 1, Place.of("cpu", "float32"))
        assert steps == dict.fromkeys(models, 2 * length)  # once to warm up


def test_lengths_are_checked(refused):
    assert "lengths of 2 or more, got 1" in refused("bench", "translation", "--lengths", "1")
