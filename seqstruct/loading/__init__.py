"""Trained models as functions of text: `seqstruct.load` of a checkpoint."""
