"""Text: subwords, cleaning, reading and writing of its formats."""
