"""Attention along arcs between the tokens of a sentence: the common passes, and where trees have their root.

Words are the real tokens of a row, numbered from 1; 0 is the root.  The root is a symbol in front of each sentence,
which has a learned vector as its value, or with `root_token` the first token of the row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from seqstruct.attention.base import Attention, Inputs, Reading, Shape
from seqstruct.ops.rows import Rows
from seqstruct.ops.softmax import weighted_values


class RowTrees(NamedTuple):
    """One distribution over trees, or one tree, for each row, padding last.

    parents: B n+1 n+1, the probability that word m (axis 2) has the head h (axis 1); zero at padding.
    heads: B n long, the number of each word's head in the best tree, -1 at padding; or None if it was not asked for.
    """

    parents: Tensor
    heads: Tensor | None


class ArcAttention(Attention):
    """Self-attention whose weights come from the keys and whose values are summed as they are.

    Needs the whole sequence at once.
    """

    streaming = False
    queried = False
    drops_weights = True
    carries = True

    def __init__(self, config: Any, shape: Shape):
        """Raises ValueError unless values have the size of the output."""
        super().__init__(config, shape)
        if shape.value_dim != shape.embed_dim:
            raise ValueError(f"{self.name} sums values as they are: value_dim is embed_dim, {shape.embed_dim}")

    def parallel(self, inputs: Inputs, state: None) -> tuple[Reading, None]:
        """All tokens at once; weights are B 1 S S; `carry` is handed on.

        Raises ValueError if padding stands between real tokens.
        """
        _, key, value, padding_mask, need_weights, carry = inputs
        rows = Rows.of(padding_mask, *key.shape[:2])
        need_heads = need_weights and not self.training
        key, value = rows.to_front(key, 1), rows.to_front(value, 1)
        weights, output, extra = self.attend(key, value, rows, carry, need_heads)
        shown = rows.back(weights, 1, 2).unsqueeze(1) if need_weights else None
        return Reading(rows.back(output, 1), shown, extra, carry), None

    def attend(
        self, key: Tensor, value: Tensor, rows: Rows, given: Any, need_heads: bool
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Weights B S S [b, token, token attended to] and output B S C, padding last, and `extra` as it was.

        key: B S key_dim and value: B S C, S >= 1, padding last.  given: what the layer below carries.
        need_heads: whether the best structure is wanted.
        """
        raise TypeError(f"{type(self).__name__} defines no weights")

    def sum_values(self, weights: Tensor, value: Tensor) -> Tensor:
        """B S C; some weights are dropped in training."""
        return weighted_values(weights, value, self.dropout_rate)


class TreeAttention(ArcAttention):
    """A subclass gives the trees; its Config has the option `root_token`.

    A reading has in `extra`: marginals B S S+1, the probability that token j (axis 1) has the head 0 (the root) or the
    token k - 1 (axis 2, k > 0); with `root_token` it is B S S, axis 2 the tokens.  Where weights are asked for in
    evaluation it has also heads B S long, the most probable tree: the number of each word's head, -1 at padding and at
    a root token.
    """

    root_has_value = True

    def __init__(self, config: Any, shape: Shape):
        super().__init__(config, shape)
        learned = self.root_has_value and not config.root_token
        self.root_value = nn.Parameter(torch.zeros(shape.value_dim)) if learned else None

    def trees(self, key: Tensor, rows: Rows, given: Any, need_heads: bool) -> RowTrees:
        """The trees of `attend`'s arguments."""
        raise TypeError(f"{type(self).__name__} defines no trees")

    def attend(
        self, key: Tensor, value: Tensor, rows: Rows, given: Any, need_heads: bool
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        tree = self.trees(key, rows, given, need_heads)
        parents = tree.parents.transpose(1, 2)  # B n+1 n+1, [b, word, head]
        own_root = not self.config.root_token
        if own_root:
            parents = parents[:, 1:]  # B S S+1
        extra = {"marginals": rows.back(rows.back(parents, 1), 2, root=own_root)}
        if tree.heads is not None:
            heads = tree.heads if own_root else pad(tree.heads, (1, 0), value=-1)
            extra["heads"] = rows.back(heads, 1)
        return *self.weights_and_sums(parents, value), extra

    def weights_and_sums(self, parents: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and output of `attend` from parents B S S (or S+1, the root first): a token reads its parents."""
        weights = parents[:, :, parents.size(2) - parents.size(1) :]
        if self.root_value is None:
            return weights, self.sum_values(weights, value)
        root = self.root_value.to(value.dtype).expand(len(value), 1, -1)
        return weights, self.sum_values(parents, torch.cat([root, value], 1))

    def words(self, rows: Rows) -> Tensor | None:
        """B n bool, True = padding, over the words, padding last; None where all are real."""
        if rows.real is None:
            return None
        return ~(rows.real[:, 1:] if self.config.root_token else rows.real)
