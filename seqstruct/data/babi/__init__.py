"""bAbI question answering (Weston et al. 2015): reading stories, preparing folders, batches for several seeds."""
