"""What decoders with a state of their own share: steps, reordering, features alone."""

from __future__ import annotations

import torch
from fairseq.data import Dictionary

from seqstruct.bridge.stateful_decoder import StatefulDecoder


class Summing(StatefulDecoder):
    """Features are sums of all tokens so far, times `factor`."""

    def extract_features(self, prev_output_tokens, encoder_out=None, incremental_state=None, factor=1):
        saved = self.saved(incremental_state)
        total, length = (prev_output_tokens.new_zeros(len(prev_output_tokens)), 0) if saved is None else (
            saved["state"], saved["length"]
        )
        sums = total[:, None] + prev_output_tokens[:, length:].cumsum(1)
        self.save(incremental_state, state=sums[:, -1], length=prev_output_tokens.size(1))
        return factor * sums, {"attn": [None]}

    def output_layer(self, features):
        return -features

    def max_positions(self):
        return 100


def test_steps_and_reordering(generator):
    decoder, state = Summing(Dictionary()), {}
    tokens = torch.randint(9, (3, 5), generator=generator)
    whole, extra = decoder(tokens, factor=2)
    assert torch.equal(whole, -2 * tokens.cumsum(1)) and extra == {"attn": [None]}
    assert torch.equal(decoder(tokens, features_only=True)[0], tokens.cumsum(1))
    decoder.reorder_incremental_state(state, torch.tensor([0, 1]))
    assert state == {}
    assert torch.equal(decoder(tokens[:, :2], incremental_state=state, factor=2)[0], whole[:, :2])
    order = torch.tensor([2, 0])
    decoder.reorder_incremental_state(state, order)
    assert torch.equal(decoder(tokens[order, :4], incremental_state=state, factor=2)[0], whole[order, 2:4])
    other = {}
    assert torch.equal(Summing(Dictionary())(tokens, incremental_state=other)[0], -tokens.cumsum(1))
    assert state.keys() != other.keys()
