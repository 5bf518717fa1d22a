"""Recurrent cells.  B batch, T steps, h or D size of a state, N positions, C size of a vector.

    lstm_step(gates, cell)                          B h, B h from gates B 4h and cell B h
    lstm_sequence(inputs, hidden, cell, ...)        B T h, B h, B h: all steps in one pass
    gru_step(input_gates, hidden_gates, hidden)     B h from gates B 3h of both sides and the state B h
    stack_lstm(gates, hidden, cell, ...)            T B h: an LSTM with a stack over a whole sequence
    ordered_step, ordered_lstm, cumax               the ordered-neurons LSTM, one step or all
    distance_gates, gated_attention                 gates ... S from syntactic distances, and attention through them
    gated_convolution(leaves, weight, bias)         B N C: a pyramid over a sequence
"""

from seqstruct.ops.cells.gated_convolution import gated_convolution
from seqstruct.ops.cells.gru import gru_step
from seqstruct.ops.cells.lstm import lstm_sequence, lstm_step
from seqstruct.ops.cells.ordered_neurons import cumax, distance_gates, gated_attention, ordered_lstm, ordered_step
from seqstruct.ops.cells.stack_lstm import StackTape, stack_lstm
