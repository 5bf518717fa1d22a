"""The stratification stack of Grefenstette et al. (2015): elements of real strengths, popped and read by strength.

`naive` has its equations.  Strengths to push and to pop are B T, pushed vectors and readings B T m.

    stratification_stack    the readings of all steps at once, and the stack after them; of one step, where T is 1
    empty_stack             a stack of no elements
    StratificationStack     the value that both hand out
"""

from seqstruct.ops.stratification.stack import StratificationStack, empty_stack, stratification_stack
