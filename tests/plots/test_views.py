"""What layers of a model do with a string."""

from __future__ import annotations

import numpy as np
import pytest

from seqstruct.ops.pushdown import expected_actions, most_probable_run
from seqstruct.plots.views import layer_views
from tests.golden.checkpoints.make import FOLDER
from tests.models.building import cfl_dictionary, language_model, language_model_config, task_of


def test_a_nondeterministic_stack_is_seen_through_its_runs(monkeypatch):
    """Expected actions and the most probable run come from the log-weights that the layer computed for the string."""
    dictionary = cfl_dictionary("dyck")
    model, task = language_model("Tf_Nd", dictionary, 2), task_of(dictionary)
    task.cfg = language_model_config()
    monkeypatch.setattr("seqstruct.plots.views.load_model", lambda *_: (model, task))
    seen = []
    mechanism = model.decoder.layers[2].self_attn.mechanism
    mechanism.transition_layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    views = layer_views("checkpoint.pt", "( [ ] )")
    (view,) = [view for view in views if view.actions is not None]
    assert np.allclose(view.actions, expected_actions(seen[0], states=2, symbols=3)[0].numpy())
    assert view.run == most_probable_run(seen[0], states=2, symbols=3)[0]
    assert len(view.run.transitions) == len(view.rows) == 5
    assert all(other.run is None for other in views if other is not view)
    assert len(mechanism.transition_layer._forward_hooks) == 1, "only this test's own is left"


@pytest.mark.parametrize(("name", "data", "text", "first"), [
    ("lm_softmax", "text", "a b", "</s>"), ("transformer_recognizer", "recognition", "( )", "<s>"),
])
def test_before_a_text_stands_what_stood_there_in_training(name, data, text, first):
    (view, *_) = layer_views(FOLDER / f"{name}.pt", text, data=FOLDER / "data" / data)
    assert view.rows == [first, *text.split()]


def test_a_translation_begins_with_what_the_decoder_reads_first():
    views = layer_views(FOLDER / "mt_shared.pt", "a b", target="b c", data=FOLDER / "data" / "text")
    rows = {tuple(view.rows) for view in views if view.title.startswith(("decoder self", "cross"))}
    assert rows == {("</s>", "b", "c")}
