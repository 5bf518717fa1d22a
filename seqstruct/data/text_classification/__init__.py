"""Sentences with one label each: SST, subj, CR and Amazon reviews (Peng 2022, section 6.6.3)."""
