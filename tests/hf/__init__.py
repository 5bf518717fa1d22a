"""Importing transformers' models comes after this, which sees to a torchaudio that cannot be loaded."""

import seqstruct.hf.exchanged  # noqa: F401
