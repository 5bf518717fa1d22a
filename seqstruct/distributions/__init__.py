"""Distributions over structures, after `torch.distributions`: torch alone.

    paths       LinearChain, HiddenMarkov, SemiMarkov (segments), WFSA, Pushdown (runs of automata)
    trees       ProjectiveTree, NonProjectiveTree (dependencies), ConstituencyTree (labelled spans)
    alignments  Alignment (monotone, edit, CTC)
    keys        Categorical, Bernoulli

`StructuredDistribution` says what each can do; a class says what its potentials and events are.
"""

from seqstruct.distributions.alignments import Alignment
from seqstruct.distributions.automata import WFSA, Pushdown, Runs
from seqstruct.distributions.base import StructuredDistribution, TopK
from seqstruct.distributions.chains import Chain, HiddenMarkov, LinearChain, SemiMarkov
from seqstruct.distributions.independent import Bernoulli, Categorical
from seqstruct.distributions.trees import ConstituencyTree, NonProjectiveTree, ProjectiveTree

__all__ = [
    "WFSA",
    "Alignment",
    "Bernoulli",
    "Categorical",
    "Chain",
    "ConstituencyTree",
    "HiddenMarkov",
    "LinearChain",
    "NonProjectiveTree",
    "ProjectiveTree",
    "Pushdown",
    "Runs",
    "SemiMarkov",
    "StructuredDistribution",
    "TopK",
]
