"""A recurrent decoder with any attention of the cross site.

The attention is asked either with the state that a step has made ("current": Luong et al. 2015) or with the one before
it ("previous": Bahdanau et al. 2015, Wu et al. 2016).  In the first case all steps are one batch, unless the features
of a step are part of the next one's input (input feeding).  In the second case the lowest layer goes step by step and
the layers above it are a batch.

fairseq's types are read at run time: no postponed annotations here.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from seqstruct.attention import Choice, Reading, Shape, Site
from seqstruct.bridge.adapter import reorder_source, reorder_state
from seqstruct.bridge.passes import current_pass
from seqstruct.bridge.stateful_decoder import StatefulDecoder
from seqstruct.layers.recurrent import CellState, RecurrentLayer, Step, check_rate, joined, separated
from seqstruct.models.rnn_translation.clipping import Clipping
from seqstruct.models.rnn_translation.encoder import EncoderOutput
from seqstruct.models.rnn_translation.output import OUTPUTS

INITIAL_STATES = ("copy", "projected", "zero")
QUERIES = ("current", "previous")


class DecoderState(NamedTuple):
    """What is kept between the steps of decoding; every tensor has the batch first.

    cells: of all layers, joined.  features: B F, the last step's, for input feeding.  memory: the attention's State, or
    B 0 without attention.  length: B long, symbols read so far.
    """

    cells: CellState
    features: Tensor
    memory: Any
    length: Tensor


class Steppers(NamedTuple):
    """steps: of each layer.  versions: of the weights that they are arranged of."""

    steps: List[Step]
    versions: List[Any]


class Decoded(NamedTuple):
    """Of T steps: features B T F, the last step's dropout included; readings; states of all layers; the last features.

    readings are in order of time, one for all steps or one for each; none without attention.
    """

    features: Tensor
    readings: List[Reading]
    states: List[CellState]
    last: Tensor


class RecurrentDecoder(StatefulDecoder):
    """Layers of LSTMs or GRUs, an attention, and the layer of the vocabulary."""

    def __init__(
        self,
        dictionary: Any,
        *,
        embed_dim: int,
        cell: str,
        hidden_size: int,
        layers: int,
        memory_size: int,
        summary_size: int,
        state_size: int,
        attention: Optional[Choice],
        query: str = "current",
        attention_heads: int = 1,
        input_feeding: bool = False,
        source_summary: bool = False,
        initial_state: str = "copy",
        output: str = "attentional",
        maxout_size: int = 500,
        residual_from: int = 0,
        dropout: float = 0.0,
        max_positions: int = 1024,
        clipping: Optional[Clipping] = None,
        logit_clip: float = 0.0,
    ):
        """memory_size, summary_size, state_size: of the encoder's output.  attention: the mechanism, None for none.

        query: "current" or "previous".  input_feeding: the last step's features enter the lowest layer.
        source_summary: the encoder's summary, through a layer with tanh, enters every step and the output.
        initial_state: the encoder's last states ("copy"), a layer with tanh of the summary ("projected"), "zero".
        residual_from: the first layer, from 2, whose input is added to its output; 0 for none.
        clipping: of cells and of what layers hand on.  logit_clip: greatest absolute logit, 0 for any.
        Raises ValueError where these do not go together.
        """
        super().__init__(dictionary)
        _check_options(layers, query, initial_state, output, residual_from, logit_clip)
        if initial_state == "copy" and state_size != layers * hidden_size:
            raise ValueError(
                "the initial state 'copy' needs an encoder of one direction and as many layers as the decoder has"
            )
        check_rate("dropout", dropout)
        _check_feeding(query, input_feeding, attention)
        self.query, self.input_feeding, self.initial_state = query, input_feeding, initial_state
        self.residual_from, self.dropout, self.positions = residual_from, dropout, max_positions
        self.clipping, self.logit_clip = clipping, logit_clip
        self.embed_tokens = nn.Embedding(len(dictionary), embed_dim, padding_idx=dictionary.pad())
        self.attention = None
        if attention is not None:
            shape = Shape.of(Site.CROSS, hidden_size, attention_heads, memory_dim=memory_size)
            self.attention = attention.build(shape)
            if not self.attention.streaming:
                raise ValueError(f"cross attention: {attention.name} needs all queries at once and cannot decode")
        context = hidden_size if attention is not None else 0
        self.summary = nn.Linear(summary_size, hidden_size) if source_summary else None
        if source_summary:
            summary_size = hidden_size
        constant = hidden_size if source_summary else 0
        sizes = (embed_dim, maxout_size) if output == "maxout" else ()
        self.output = OUTPUTS[output](hidden_size, context + constant, *sizes)
        late = self.output.size if input_feeding else context if query == "previous" else 0
        above = context if query == "previous" else 0
        sizes = [embed_dim + constant + late] + [hidden_size + above] * (layers - 1)
        self.layers = nn.ModuleList(RecurrentLayer(cell, size, hidden_size, clipping=clipping) for size in sizes)
        self.late = [late] + [hidden_size if input_feeding else 0] * (layers - 1)  # inputs that a step before decides
        self.initial = nn.Linear(summary_size, layers * hidden_size) if initial_state == "projected" else None
        self.output_projection = nn.Linear(self.output.size, len(dictionary))

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[EncoderOutput] = None,
        incremental_state: Optional[Dict[str, Dict[str, Any]]] = None,
        **_: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Features B T F, and {"attn": [weights B T S, the mean over heads, or None]}; weights in decoding alone."""
        saved = self.saved(incremental_state)
        state = self.begin(encoder_out) if saved is None else saved["state"]
        tokens = prev_output_tokens if saved is None else prev_output_tokens[:, int(state.length[0]) :]
        need_weights = incremental_state is not None or current_pass().collects
        steppers = None if incremental_state is None else self._steppers(saved)
        embedded = dropout(self.embed_tokens(tokens), self.dropout, self.training)
        decoded = self._decode(embedded, encoder_out, state, need_weights, steppers)
        if incremental_state is not None:
            length = state.length + tokens.size(1)
            state = DecoderState(joined(decoded.states), decoded.last, state.memory, length)
            self.save(incremental_state, state=state, steppers=steppers)
        weights = None
        if decoded.readings and need_weights:
            reading = _joined_in_time(decoded.readings)
            current_pass().take(Site.CROSS, 0, reading)
            weights = None if reading.weights is None else reading.weights.mean(1)
        return decoded.features, {"attn": [weights]}

    def begin(self, source: EncoderOutput) -> DecoderState:
        """The state before the first step; the source is written to the attention's memory."""
        batch, like = len(source.memory), source.memory
        cells = self._initial_cells(source)
        memory = like.new_zeros(batch, 0)
        if self.attention is not None:
            memory = self.attention.write(
                self.attention.initial_state(batch), source.memory, source.memory, source.padding_mask
            )
        features = like.new_zeros(batch, self.output.size)
        return DecoderState(cells, features, memory, torch.zeros(batch, dtype=torch.long, device=like.device))

    def _initial_cells(self, source: EncoderOutput) -> CellState:
        empty = joined([layer.initial_state(len(source.memory)) for layer in self.layers])
        if self.initial_state == "zero":
            return empty
        if self.initial_state == "projected":
            summary = source.summary if self.summary is None else self._constant(source)
            return CellState(self.initial(summary).tanh(), empty.cell)
        return source.state

    def _constant(self, source: EncoderOutput) -> Tensor:
        return self.summary(source.summary).tanh()

    def _steppers(self, saved: Optional[Dict[str, Any]] = None) -> Steppers:
        """Those saved in decoding, while the weights are what they were; else new ones."""
        versions = [layer.version() for layer in self.layers]
        if saved is not None and saved["steppers"].versions == versions:
            return saved["steppers"]
        return Steppers([layer.stepper(late) for layer, late in zip(self.layers, self.late, strict=True)], versions)

    def _decode(
        self,
        embedded: Tensor,
        source: EncoderOutput,
        state: DecoderState,
        need_weights: bool,
        steppers: Optional[Steppers],
    ) -> Decoded:
        """Read the embedded symbols B T E; steppers: those of decoding, or None."""
        states, inputs = separated(state.cells, len(self.layers)), embedded
        constant = None
        if self.summary is not None:
            constant = self._constant(source)[:, None].expand(-1, embedded.size(1), -1)
            inputs = torch.cat([embedded, constant], 2)
        position = state.length[:, None] + torch.arange(embedded.size(1), device=embedded.device)
        reader = _Reader(self.attention, state.memory, position, need_weights)
        if embedded.size(1) == 0:
            return Decoded(embedded.new_zeros(*embedded.shape[:2], self.output.size), [], states, state.features)
        if steppers is None and any(self.late):
            steppers = self._steppers()
        if self.input_feeding:
            return self._feed(inputs, embedded, constant, state.features, states, reader, steppers.steps)
        before = self._bounded(states[-1].hidden)
        steps = steppers.steps if steppers is not None and embedded.size(1) == 1 else None
        if self.query == "previous":
            x, contexts = self._attend_before(inputs, states, reader, steppers.steps[0])
        else:
            x, contexts = self._layer(0, inputs, states, steps), None
        for layer in range(1, len(self.layers)):
            x = self._layer(layer, x, states, steps, contexts)
        hidden = x
        if self.query == "previous" and len(self.layers) == 1:
            hidden = torch.cat([before[:, None], x[:, :-1]], 1)
        elif self.query == "current" and self.attention is not None:
            contexts = reader.read(x)
        parts = [part for part in (contexts, constant) if part is not None]
        context = torch.cat(parts, 2) if parts else x[..., :0]
        features = dropout(self.output(context, hidden, embedded), self.dropout, self.training)
        return Decoded(features, reader.readings, states, features[:, -1])

    def _layer(
        self,
        number: int,
        below: Tensor,
        states: List[CellState],
        steps: Optional[List[Step]],
        contexts: Optional[Tensor] = None,
    ) -> Tensor:
        """All steps of one layer, whose state in `states` is replaced; dropout on what comes from a layer below.

        steps: of all layers, for one symbol alone; None for the layers' own way through any number.
        """
        layer = self.layers[number]
        inputs = dropout(below, self.dropout, self.training) if number else below
        read = inputs if contexts is None else torch.cat([inputs, contexts], 2)
        if steps is None:
            outputs, states[number] = layer(read, states[number])
        else:
            states[number] = steps[number](layer.known(read)[:, 0], read[:, 0, :0], states[number])
            outputs = states[number].hidden[:, None]
        return self._bounded(outputs + inputs if self.residual_from and number + 1 >= self.residual_from else outputs)

    def _bounded(self, x: Tensor) -> Tensor:
        return x if self.clipping is None else self.clipping(x)

    def _attend_before(
        self, inputs: Tensor, states: List[CellState], reader: "_Reader", step: Step
    ) -> Tuple[Tensor, Tensor]:
        """Hidden states of the lowest layer, each after reading the context that the state before it asks for."""
        outputs, contexts = [], []
        for known in self.layers[0].known(inputs).unbind(1):
            context = reader.read(states[0].hidden[:, None])[:, 0]
            states[0] = step(known, context, states[0])
            outputs.append(states[0].hidden)
            contexts.append(context)
        return self._bounded(torch.stack(outputs, 1)), torch.stack(contexts, 1)

    def _feed(
        self,
        inputs: Tensor,
        embedded: Tensor,
        constant: Optional[Tensor],
        last: Tensor,
        states: List[CellState],
        reader: "_Reader",
        steps: List[Step],
    ) -> Decoded:
        """All layers step by step, with the features of the step before among the inputs of the lowest."""
        above = [layer.known(inputs[:, :1, :0])[:, 0] for layer in self.layers[1:]]
        features = []
        for t, known in enumerate(self.layers[0].known(inputs).unbind(1)):
            states[0] = steps[0](known, last, states[0])
            x = self._bounded(states[0].hidden)
            for layer, nothing in enumerate(above, 1):
                below = dropout(x, self.dropout, self.training)
                states[layer] = steps[layer](nothing, below, states[layer])
                residual = self.residual_from and layer + 1 >= self.residual_from
                x = self._bounded(states[layer].hidden + below if residual else states[layer].hidden)
            context = reader.read(x[:, None])[:, 0]
            context = context if constant is None else torch.cat([context, constant[:, t]], 1)
            last = dropout(self.output(context, x, embedded[:, t]), self.dropout, self.training)
            features.append(last)
        return Decoded(torch.stack(features, 1), reader.readings, states, last)

    def output_layer(self, features: Tensor, **_: Any) -> Tensor:
        """Logits B T N."""
        logits = self.output_projection(features)
        return logits.clamp(-self.logit_clip, self.logit_clip) if self.logit_clip else logits

    def reordered(self, state: DecoderState, new_order: Tensor) -> DecoderState:
        """The rows new_order; the memory's too, unless sources stay in place."""
        *steps, memory, length = state
        steps = (reorder_state(part, new_order) for part in steps)
        return DecoderState(*steps, reorder_source(memory, new_order), length.index_select(0, new_order))

    def max_positions(self) -> int:
        return self.positions


def _check_options(
    layers: int, query: str, initial_state: str, output: str, residual_from: int, logit_clip: float
) -> None:
    if layers < 1:
        raise ValueError(f"expected 1 or more decoder layers, got {layers}")
    if query not in QUERIES or initial_state not in INITIAL_STATES or output not in OUTPUTS:
        raise ValueError(
            f"expected a query among {QUERIES}, an initial state among {INITIAL_STATES} and an output among "
            f"{tuple(OUTPUTS)}, got {query!r}, {initial_state!r} and {output!r}"
        )
    if residual_from == 1 or residual_from < 0:
        raise ValueError("residual connections of a decoder begin at layer 2 or above")
    if logit_clip < 0:
        raise ValueError(f"logit_clip: expected 0 or more, got {logit_clip}")


def _check_feeding(query: str, input_feeding: bool, attention: Optional[Choice]) -> None:
    if input_feeding and query == "previous":
        raise ValueError("input feeding goes with the query 'current'; with 'previous' the context is fed")
    if attention is None and (input_feeding or query == "previous"):
        raise ValueError("input feeding and the query 'previous' need an attention")


class _Reader:
    """Readings of one memory, one after another, within one pass."""

    def __init__(self, attention: Any, memory: Any, position: Tensor, need_weights: bool):
        self.attention, self.memory, self.position, self.need_weights = attention, memory, position, need_weights
        self.readings: List[Reading] = []
        self.seen = 0

    def read(self, query: Tensor) -> Tensor:
        """Contexts B T C for the next T queries B T C."""
        now = self.position[:, self.seen : self.seen + query.size(1)]
        self.seen += query.size(1)
        self.readings.append(self.attention.read(self.memory, query, now, need_weights=self.need_weights))
        return self.readings[-1].output


def _joined_in_time(readings: List[Reading]) -> Reading:
    """Readings of consecutive queries as one."""
    if len(readings) == 1:
        return readings[0]
    weights = None
    if readings[0].weights is not None:
        weights = torch.cat([reading.weights for reading in readings], 2)
    return Reading(torch.cat([reading.output for reading in readings], 1), weights)
