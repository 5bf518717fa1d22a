"""Presets of `rnn_translation`: the models of their papers, at the published sizes.

Deviations that all of them share: a GRU applies its reset gate after the recurrent product (see
`seqstruct.ops.cells.gru`); one attention head without scaling, and where encoder and decoder differ in
size a linear map between them (see `seqstruct.attention.alignment.base`); each layer has one bias vector.
"""

import seqstruct.models.rnn_translation.model  # noqa: F401  registers the model
from seqstruct.models.presets import preset

CHO = dict(
    cell="gru", embed_dim=100, hidden_size=1000, encoder_layers=1, decoder_layers=1, cross_attention="none",
    source_summary=True, initial_state="projected", output="maxout", maxout_size=500, dropout=0.0,
    initialization="orthogonal", initialization_bound=0.01,
)
# Luong et al. 2015, sec. 4.1: 4 layers of size 1000, reversed source, input feeding, dropout 0.2, U(-0.1, 0.1)
LUONG = dict(
    cell="lstm", embed_dim=1000, hidden_size=1000, encoder_layers=4, decoder_layers=4, reverse_source=True,
    input_feeding=True, dropout=0.2, initialization_bound=0.1,
)

# The output matrix is not factored.
preset("rnn_translation", "rnn_encoder_decoder",
       "Cho et al. 2014, sec. 4.1 and appendix A: GRUs of size 1000, embeddings of 100, 500 maxout units.", **CHO)
# Here both have the decoder's size.
preset("rnn_translation", "rnn_gated_convolution",
       "Cho et al. 2014b, sec. 3.2 and 4.2: the encoder is a pyramid of size 2000, the decoder that of 2014 with 1000.",
       **CHO | dict(encoder="gated_convolution", embed_dim=620))
preset("rnn_translation", "rnn_sutskever",
       "Sutskever et al. 2014, sec. 3.3 and 3.4: 4 layers of size 1000, reversed source, no attention, U(-0.08, 0.08).",
       cell="lstm", embed_dim=1000, hidden_size=1000, encoder_layers=4, decoder_layers=4, reverse_source=True,
       cross_attention="none", output="plain", dropout=0.0, initialization_bound=0.08)
# The attention asks with the state before a step, and the output reads that state too (appendix A.2.2).
preset("rnn_translation", "rnnsearch", "Bahdanau et al. 2015, appendix A and B: GRUs of size 1000, both directions, "
       "additive attention, 500 maxout units.",
       cell="gru", embed_dim=620, hidden_size=1000, encoder_layers=1, decoder_layers=1, encoder_directions="all",
       cross_attention="additive(size=1000)", attention_query="previous", initial_state="projected", output="maxout",
       maxout_size=500, dropout=0.0, initialization="orthogonal", initialization_bound=0.01)
preset("rnn_translation", "rnn_luong_global", "Luong et al. 2015, global attention; the scores are luong(score='dot'), "
       "'general', 'concat', or location.", cross_attention="luong(score='dot')", **LUONG)
preset("rnn_translation", "rnn_luong_local_m",
       "Luong et al. 2015, local-m: a window of 10 words on each side that moves by one word a step.",
       cross_attention="local_monotonic(score='general', half_width=10)", **LUONG)
preset("rnn_translation", "rnn_luong_local_p",
       "Luong et al. 2015, local-p: a window of 10 words on each side of a predicted place, and a Gaussian.",
       cross_attention="local_predictive(score='general', half_width=10)", **LUONG)
# Its context enters all decoder layers, and the output reads it beside the top layer.  When the source's bounds fall is
# not published, and training with them takes longer: they are off.  For N updates they are --cell-clip 8
# --cell-clip-final 1 --cell-clip-updates N --logit-clip 25.  Its wordpieces are served by SentencePiece; its beam
# search and 8-bit inference by the task translation_gnmt; its training for expected GLEU by the criterion
# expected_gleu.
preset("rnn_translation", "rnn_gnmt",
       "Wu et al. 2016, sec. 3 and 8.2: 8 + 8 layers of size 1024, residual from the third, the first one in both "
       "directions, additive attention asked by the lowest decoder layer.",
       cell="lstm", embed_dim=1024, hidden_size=1024, encoder_layers=8, decoder_layers=8, encoder_directions="first",
       residual_from=3, cross_attention="additive", dropout=0.2, attention_query="previous", initial_state="zero",
       output="plain", initialization_bound=0.04)
preset("rnn_translation", "rnn_structured_attention",
       "Kim et al. 2017, appendix A.3: 2 + 2 layers of size 500, no input feeding, U(-0.1, 0.1), dropout 0.3.",
       cell="lstm", embed_dim=500, hidden_size=500, encoder_layers=2, decoder_layers=2,
       cross_attention="segmentation", dropout=0.3, initialization_bound=0.1)
