"""Natural language inference: pairs of sentences with a label, from SNLI (Bowman et al. 2015) or RTE."""
