"""Trees over the words of a sentence: distributions over dependency trees, layers on top of them, trees of spans.

Potentials of dependency trees are arcs B n+1 n+1, log space: [b, h, m] scores that word m takes the head h, position 0
is the root symbol; padding_mask is B n over the words, True = padding, or None.  A tree has the probability

    p(tree) = exp(sum_{h -> m in tree} arcs[h, m]) / Z

* all projective trees, by Eisner's chart (`projective`; its definition is `naive`), and all trees, by determinants
  (`spanning`): `projective_...` and `spanning_log_partition` B, `..._marginals` B n+1 n+1, `..._entropy` B,
  `..._best_tree` (heads B n, score B);
* all binary trees, by their spans, labelled or not (`constituency`): `constituency_log_partition` B,
  `constituency_marginals` B n n or B n n L;
* layers that choose (`surrogate`): `structured_argmax`, `dependency_argmax`, their GRADIENTS, and the projections onto
  relaxed polytopes that one of these takes (`projection`);
* the best semantic graph (`semantic_graph`): `best_graph` B N N, `graph_parts`;
* binary trees from scores (`span_parsing`): lists of `Split`.
"""

from seqstruct.ops.trees.constituency import (
    constituency_log_partition,
    constituency_marginals,
    constituency_total,
)
from seqstruct.ops.trees.layout import BestTree
from seqstruct.ops.trees.projection import project_dependencies, project_labeled_arcs, project_simplex
from seqstruct.ops.trees.projective import (
    projective_best_tree,
    projective_entropy,
    projective_log_partition,
    projective_marginals,
    projective_total_of,
)
from seqstruct.ops.trees.semantic_graph import best_graph, graph_parts
from seqstruct.ops.trees.span_parsing import (
    Split,
    left_branching,
    random_branching,
    right_branching,
    split_by_distances,
    split_by_span_scores,
    split_top_down,
)
from seqstruct.ops.trees.spanning import (
    spanning_best_tree,
    spanning_entropy,
    spanning_log_partition,
    spanning_marginals,
)
from seqstruct.ops.trees.surrogate import GRADIENTS, dependency_argmax, structured_argmax
