"""`rnn_translation`: recurrent encoder-decoders with any attention of the cross site, and presets of their papers.

What fairseq's own `lstm` has otherwise than Luong et al. (2015), whom it follows: input feeding cannot be switched off,
the score is `general` alone, and every step of the decoder is a step of Python.

fairseq's types are read at run time: no postponed annotations here.
"""

from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, register_model
from torch import nn

from seqstruct.attention import Choice, Site, parse_choices
from seqstruct.bridge.initialization import initialize_uniform
from seqstruct.bridge.options import flag
from seqstruct.bridge.swapped_attention import warn
from seqstruct.layers.recurrent import GATES, RecurrentLayer, check_sizes
from seqstruct.models.presets import PLAN_HELP
from seqstruct.models.rnn_translation.clipping import Clipping
from seqstruct.models.rnn_translation.decoder import INITIAL_STATES, QUERIES, RecurrentDecoder
from seqstruct.models.rnn_translation.encoder import DIRECTIONS, RecurrentEncoder
from seqstruct.models.rnn_translation.gated_convolution import GatedConvolutionEncoder
from seqstruct.models.rnn_translation.output import OUTPUTS

INITIALIZATIONS = ("uniform", "orthogonal")
ENCODERS = ("recurrent", "gated_convolution")
OF_DECODER = (  # options that are arguments of the decoder by the same name
    "embed_dim", "cell", "hidden_size", "attention_heads", "input_feeding", "source_summary", "initial_state", "output",
    "maxout_size", "residual_from", "dropout", "logit_clip",
)


@dataclass
class RecurrentTranslationConfig(FairseqDataclass):
    """One flat set of options for the command line and YAML."""

    encoder: ChoiceEnum(list(ENCODERS)) = flag(
        "recurrent", "recurrent layers, or a pyramid of gated recursive convolutions"
    )
    cell: ChoiceEnum(list(GATES)) = flag("lstm", "recurrent cell")
    embed_dim: int = flag(500, "size of source and target embeddings, 1 or more")
    hidden_size: int = flag(500, "size of hidden states, of each direction; 1 or more")
    encoder_layers: int = flag(2, "recurrent layers of the encoder, 1 or more")
    decoder_layers: int = flag(2, "recurrent layers of the decoder, 1 or more")
    encoder_directions: ChoiceEnum(list(DIRECTIONS)) = flag(
        "forward", "left to right, or both directions in the first layer or in all"
    )
    reverse_source: bool = flag(False, "read the source's words from the last to the first")
    residual_from: int = flag(0, "first layer, from 2, whose input is added to its output; 0 for none")
    cross_attention: str = flag("softmax", f"{PLAN_HELP}; 'none' for no attention")
    attention_heads: int = flag(1, "heads of a multi-head mechanism; divides hidden_size")
    attention_query: ChoiceEnum(list(QUERIES)) = flag(
        "current", "whether the state after a step asks the attention, or the one before it"
    )
    input_feeding: bool = flag(False, "the last step's features are part of the next one's input")
    source_summary: bool = flag(False, "the encoder's last state enters every decoder step and the output")
    initial_state: ChoiceEnum(list(INITIAL_STATES)) = flag(
        "copy", "start from the encoder's states, a projection of the last one, or 0"
    )
    output: ChoiceEnum(list(OUTPUTS)) = flag("attentional", "tanh of context and state, maxout, or the state itself")
    maxout_size: int = flag(500, "size of the maxout output, 1 or more")
    dropout: float = flag(0.3, "dropout probability of embeddings, between layers, and of features, in [0, 1)")
    initialization: ChoiceEnum(list(INITIALIZATIONS)) = flag(
        "uniform", "uniform within the bound, or orthogonal recurrent matrices and a normal distribution"
    )
    initialization_bound: float = flag(0.1, "bound of the uniform distribution or deviation of the normal one, above 0")
    cell_clip: float = flag(
        0.0, "bound of LSTM cells and of what layers hand on, at the start of training; above 0, or 0 for none "
             "(8 in GNMT)"
    )
    cell_clip_final: float = flag(
        0.0, "that bound after --cell-clip-updates, and in evaluation; above 0, or 0 to keep the first (1 in GNMT)"
    )
    cell_clip_updates: int = flag(0, "updates over which the bound falls, 1 or more; or 0")
    logit_clip: float = flag(0.0, "bound of the logits, above 0; or 0 for none (25 in GNMT)")
    max_source_positions: int = flag(1024, "longest source, in tokens")
    max_target_positions: int = flag(1024, "longest target, in tokens")


def parse_attention(text: str) -> Optional[Choice]:
    """The mechanism of a plan of one layer, None for "none".  Raises ValueError on a plan that does not fit."""
    return None if text.strip() == "none" else parse_choices(text, 1, Site.CROSS)[0]


@register_model("rnn_translation", dataclass=RecurrentTranslationConfig)
class RecurrentTranslationModel(FairseqEncoderDecoderModel):
    """An encoder-decoder on `RecurrentEncoder` and `RecurrentDecoder`."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "RecurrentTranslationModel":
        """From the flat configuration and a translation task; ValueError on options that do not go together."""
        attention = parse_attention(cfg.cross_attention)
        check_sizes(embed_dim=cfg.embed_dim, hidden_size=cfg.hidden_size)
        last = max(cfg.decoder_layers, cfg.encoder_layers if cfg.encoder == "recurrent" else 0)
        if cfg.residual_from > last:
            raise ValueError(f"--residual-from: expected a layer up to the last, {last}, got {cfg.residual_from}")
        clips = cfg.cell_clip or cfg.cell_clip_final or cfg.cell_clip_updates
        clipping = Clipping(cfg.cell_clip, cfg.cell_clip_final, cfg.cell_clip_updates) if clips else None
        encoder = cls.build_encoder(cfg, task.source_dictionary, clipping)
        decoder = RecurrentDecoder(
            task.target_dictionary,
            layers=cfg.decoder_layers,
            memory_size=encoder.memory_size,
            summary_size=encoder.summary_size,
            state_size=encoder.state_size,
            attention=attention,
            query=cfg.attention_query,
            max_positions=cfg.max_target_positions,
            clipping=clipping,
            **{name: getattr(cfg, name) for name in OF_DECODER},
        )
        model = cls(encoder, decoder)
        if cfg.initialization == "uniform":
            initialize_uniform(model, cfg.initialization_bound)
        else:
            initialize_orthogonal(model, cfg.initialization_bound)
        return model

    @classmethod
    def build_encoder(cls, cfg: Any, dictionary: Any, clipping: Optional[Clipping] = None) -> FairseqEncoder:
        common = dict(
            embed_dim=cfg.embed_dim,
            hidden_size=cfg.hidden_size,
            dropout=cfg.dropout,
            max_positions=cfg.max_source_positions,
        )
        if cfg.encoder == "gated_convolution":
            if cfg.reverse_source or str(cfg.encoder_directions) != "forward":
                raise ValueError("--encoder gated_convolution: expected no --reverse-source and no --encoder-directions"
                                 ", it reads a sentence as a tree")
            if cfg.encoder_layers not in (1, RecurrentTranslationConfig.encoder_layers):
                raise ValueError("--encoder gated_convolution: expected no --encoder-layers, it has none, got "
                                 f"{cfg.encoder_layers}")
            return GatedConvolutionEncoder(dictionary, **common)
        return RecurrentEncoder(
            dictionary,
            **common,
            cell=cfg.cell,
            layers=cfg.encoder_layers,
            directions=cfg.encoder_directions,
            residual_from=cfg.residual_from,
            reverse=cfg.reverse_source,
            clipping=clipping,
        )

    def upgrade_state_dict_named(self, state_dict: dict, name: str) -> None:
        """Take over checkpoints with another attention: its parameters of the same name and shape, and all else.

        Raises ValueError where the attention's `check_saved` does.
        """
        super().upgrade_state_dict_named(state_dict, name)
        if name:
            return
        own, prefix = self.state_dict(), "decoder.attention."
        expected = {key for key in own if key.startswith(prefix)}
        found = {key for key in state_dict if key.startswith(prefix)}
        if self.decoder.attention is not None:
            self.decoder.attention.check_saved({key.removeprefix(prefix) for key in found})
        new = {key for key in expected if key not in found or state_dict[key].shape != own[key].shape}
        for key in found - expected:
            del state_dict[key]
        state_dict.update({key: own[key] for key in new})
        if new or found - expected:
            has, starts = ", ".join(sorted(found - expected)), ", ".join(sorted(new))
            said = f"the checkpoint has other attention ({has or 'less'}): initial values for {starts or 'nothing'}"
            warn(said, self)


def initialize_orthogonal(model: nn.Module, deviation: float) -> None:
    """Recurrent matrices orthogonal (each gate by itself), biases 0, all else from a normal distribution around 0.

    As in Cho et al. (2014, sec. 4.1) and Bahdanau et al. (2015, appendix B.1); there, the attention has a smaller
    deviation of its own.  The two matrices of a pyramid are orthogonal times 0.4 (Cho et al. 2014b, sec. 4.2).  Raises
    ValueError unless deviation > 0.
    """
    if deviation <= 0:
        raise ValueError(f"the deviation of an initialisation is positive, not {deviation}")
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=deviation)
        else:
            nn.init.zeros_(parameter)
    for module in model.modules():
        if isinstance(module, RecurrentLayer):
            with torch.no_grad():
                for gate in module.weight_hh.split(module.hidden_size):
                    nn.init.orthogonal_(gate)
        elif isinstance(module, GatedConvolutionEncoder):
            with torch.no_grad():
                for side in module.weight.split(module.memory_size)[:2]:
                    nn.init.orthogonal_(side, gain=0.4)
