"""Recurrent encoder-decoders with any attention of the cross site."""
