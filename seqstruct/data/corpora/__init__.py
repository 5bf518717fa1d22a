"""Corpora, each in one file: from what is published to a folder for fairseq."""
