"""Settings of a training, tried on its validation set: `seqstruct search`."""
