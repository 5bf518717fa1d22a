"""Models on their way to transformers and back: what `seqstruct export` and `seqstruct import` do."""
