"""Distributions over structures, after `torch.distributions`: torch alone.

    paths       LinearChain, HiddenMarkov, SemiMarkov (segments), WFSA, Pushdown (runs of automata)
    trees       ProjectiveTree, NonProjectiveTree (dependencies), ConstituencyTree (labelled spans)
    alignments  Alignment (monotone, edit, CTC)
    keys        Categorical, Bernoulli

`StructuredDistribution` says what each can do; a class says what its potentials and events are.
"""

from seqstruct.distributions.base import StructuredDistribution, TopK
from seqstruct.distributions.chains import Chain, HiddenMarkov, LinearChain
from seqstruct.distributions.independent import Bernoulli, Categorical

__all__ = [
    "Bernoulli",
    "Categorical",
    "Chain",
    "HiddenMarkov",
    "LinearChain",
    "StructuredDistribution",
    "TopK",
]
