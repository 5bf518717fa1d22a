"""fairseq's transformers with any attention in any layer of any site."""
