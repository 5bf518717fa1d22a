"""The small trained models of `tests.loading`."""

from tests.loading.conftest import classifier, language_model, translation  # noqa: F401
