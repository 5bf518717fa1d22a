"""Recurrent cells.  B batch, T steps, h or D size of a state, N positions, C size of a vector.

    lstm_step(gates, cell)                          B h, B h from gates B 4h and cell B h
    lstm_sequence(inputs, hidden, cell, ...)        B T h, B h, B h: all steps in one pass
    fused_lstm(inputs, hidden, cell, ...)           the same, torch's pass itself, with both of its biases
    gru_step(input_gates, hidden_gates, hidden)     B h from gates B 3h of both sides and the state B h
    stack_lstm(gates, hidden, cell, ...)            T B h: an LSTM with a stack over a whole sequence
    ordered_step, ordered_lstm, cumax               the ordered-neurons LSTM, one step or all
    reading_lstm(gates, keys, log_gates, ...)       B S+T 2h: an LSTM that attends to its last S states
    distance_gates(distance, past, tau)             ... S: logarithms of gates from syntactic distances
    gated_convolution(leaves, weight, bias)         B N C: a pyramid over a sequence
"""

from seqstruct.ops.cells.gated_convolution import gated_convolution
from seqstruct.ops.cells.gru import gru_step
from seqstruct.ops.cells.lstm import fused_lstm, lstm_sequence, lstm_step
from seqstruct.ops.cells.ordered_neurons import cumax, distance_gates, ordered_lstm, ordered_step
from seqstruct.ops.cells.reading_lstm import reading_lstm
from seqstruct.ops.cells.stack_lstm import StackTape, stack_lstm
