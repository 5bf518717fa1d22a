"""`memory_network`: question answering over facts by K steps of inference (Kim et al. 2017, section 4.3, appendix A.4).

Three ways to choose the facts z_1 .. z_K, with x^k and o^k = x^(k+1) the facts in embeddings of step k and k + 1:

    memn2n       MemN2N (Sukhbaatar et al. 2015): softmax of x^k q^k for each step alone, q^(k+1) = q^k + c^k
    binary_crf   a chain CRF over steps whose states are facts; q^(k+1) = Q q^k and
                 theta_{k,k+1}(i, j) = x_i^k q^k + x_i^k x_j^(k+1) + x_j^(k+1) q^(k+1), -inf for i = j
    unary_crf    a CRF with the potentials theta_k(i) = x_i^k q^k alone; the same Q

Embeddings are tied adjacently, words are weighted by their position in the sentence, facts have an embedding of their
age (`no_temporal_encoding`: none), and the answer is softmax(W (q^K + c)) with W the last embedding.  In the first
epochs (linear start) MemN2N does without its softmax.  The CRFs' log(softmax(.)) "on the q^k", which the text takes
later, is one over the facts of a step: it adds the same number to the potentials of all of them, which a CRF does not
see, and is left out.

With q^(k+1) = Q q^k no query depends on the facts, so a unary CRF weights each fact by itself: it cannot look for the
animal that another fact names, and cannot chain facts.  The unary CRF of the authors' released code (train-qa.lua of
github.com/harvardnlp/struct-attn, two steps) has the query that its facts answer, MemN2N's linear start without q^k:

    q^(k+1) = sum_i (x_i^k q^k) x_i^(k+1)            `query_update` facts; with `linear` it is Q q^k

Where the text and the released code differ otherwise:

* The weight of a word by its position is twice that of the text, 1 on average, as in the code of MemN2N.
* The code's binary CRF counts x^1 q^1 and x^K q^K twice, as potentials of its ends: `end_potentials`.
* Embeddings are tied as in the text; the code of the CRFs has one matrix for each use.

All parameters have a leading axis of S seeds, so that the models of many seeds train as one.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn

from seqstruct.bridge.options import flag
from seqstruct.layers.recurrent import check_sizes
from seqstruct.models.presets import preset
from seqstruct.ops.chains import chain_best_path, chain_marginals
from seqstruct.ops.softmax import masked_softmax

INFERENCE = ("memn2n", "binary_crf", "unary_crf")
QUERY_UPDATES = ("linear", "facts")


@dataclass
class MemoryNetworkConfig(FairseqDataclass):
    """One flat set of options for the command line and YAML."""

    inference: ChoiceEnum(INFERENCE) = flag("memn2n", "how facts are chosen: memn2n, binary_crf or unary_crf")
    query_update: ChoiceEnum(QUERY_UPDATES) = flag(
        "linear", "the CRFs' next query: linear (a learned map of the last one) or facts (the facts, weighted by "
                  "their products with the last one); MemN2N has its own"
    )
    no_temporal_encoding: bool = flag(False, "facts have no embedding of their age: stories are sets")
    end_potentials: bool = flag(
        False, "the binary CRF's first and last fact have their products with the query as potentials, besides those "
               "in the pairs"
    )
    steps: int = flag(2, "K, the facts that are chosen one after the other; 1 or more")
    embed_dim: int = flag(20, "size of words and facts, 1 or more")
    linear_start: int = flag(20, "epochs of MemN2N without its softmax, 0 or more; the CRFs have none")
    initialization_deviation: float = flag(0.1, "standard deviation of all initial parameters, > 0")


class Facts(NamedTuple):
    """What the network did with a batch of R = S B questions over at most M facts, the newest first.

    answer: S B V, logits.  node: R K M, p(z_k = i), or in MemN2N's linear start the weights.  log potentials, only for
    the CRFs, else None: unary R K M and edge R K-1 M M, as `seqstruct.ops.chains` has them.
    """

    answer: Tensor
    node: Tensor
    unary: Optional[Tensor]
    edge: Optional[Tensor]


def bags_of_words(sentences: Tensor, vocabulary: int, dtype: torch.dtype) -> Tensor:
    """2 U V: each sentence's words, weighted so that `first + depth * second` is the position encoding.

    sentences: U L long, -1 after the last word.  A word j of J (from 1) has in dimension k of d the weight
    2 (1 - j/J) - 2 (k/d) (1 - 2j/J), which is linear in the depth k/d (Sukhbaatar et al. 2015, section 4.1, doubled).
    """
    real = sentences >= 0
    J = real.sum(1, keepdim=True).clamp(min=1)
    share = torch.arange(1, sentences.size(1) + 1, device=sentences.device).to(dtype) / J  # U L
    weights = 2 * torch.stack([1 - share, 2 * share - 1]).masked_fill(~real, 0.0)
    bags = weights.new_zeros(2, sentences.size(0), vocabulary)
    return bags.scatter_add_(2, sentences.clamp(min=0).expand_as(weights), weights)


class MemoryNetwork(nn.Module):
    """S models of one shape.

    vocabulary: V words.  memory: most facts.  generators: one for each seed; they draw its parameters.
    words: S V (K+1) C, the embeddings of step 1 to K + 1 side by side.  ages: S M (K+1) C, or None without temporal
    encoding.  update: S C C, the CRFs' Q, or None where there is none.
    Raises ValueError unless query_update in MemN2N is the first of QUERY_UPDATES, sizes are 1 or more, and only the
    binary CRF has end_potentials.
    """

    def __init__(self, cfg: MemoryNetworkConfig, vocabulary: int, memory: int, generators: List[torch.Generator]):
        super().__init__()
        self.inference, query_update = str(cfg.inference), str(cfg.query_update)
        self.steps, self.end_potentials = cfg.steps, cfg.end_potentials
        if cfg.end_potentials and self.inference != "binary_crf":
            raise ValueError(f"end_potentials: only the binary CRF has them, got inference {self.inference}")
        if self.inference == "memn2n" and query_update != "linear":
            raise ValueError(f"query_update: {query_update} is for the CRFs, memn2n has its own")
        check_sizes(vocabulary=vocabulary, memory=memory, steps=cfg.steps, embed_dim=cfg.embed_dim)
        deviation = cfg.initialization_deviation
        if deviation <= 0:
            raise ValueError(f"initialization_deviation: expected more than 0, got {deviation:g}")

        def drawn(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.stack([torch.randn(shape, generator=g) * deviation for g in generators]))

        self.words = drawn(vocabulary, cfg.steps + 1, cfg.embed_dim)
        self.ages = None if cfg.no_temporal_encoding else drawn(memory, cfg.steps + 1, cfg.embed_dim)
        linear = self.inference != "memn2n" and query_update == "linear"
        self.update = drawn(cfg.embed_dim, cfg.embed_dim) if linear else None

    def forward(self, sentences: Tensor, facts: Tensor, question: Tensor, linear: bool) -> Facts:
        """Answer S B questions; sentences U L, facts S B M and question S B as `EncodedQuestions` has them.

        linear: linear start, of MemN2N.  O(S B K M^2) time and memory for the binary CRF, O(S B K M C) for all.
        """
        S, B, M = facts.shape
        V, C = self.words.size(1), self.words.size(3)
        first, second = bags_of_words(sentences, V, self.words.dtype)
        words = self.words.flatten(2)  # S V (K+1)C
        depth = torch.arange(1, C + 1, dtype=words.dtype, device=words.device) / C
        table = first @ words + depth.repeat(self.steps + 1) * (second @ words)  # S U (K+1)C
        offsets = torch.arange(S, device=facts.device) * table.size(1)
        rows = table.flatten(0, 1)
        empty = facts < 0
        memory = rows.index_select(0, (facts.clamp(min=0) + offsets.view(S, 1, 1)).flatten())
        memory = memory.view(S, B, M, -1)
        if self.ages is not None:
            memory = memory + self.ages[:, :M].flatten(2).unsqueeze(1)
        memory = memory.view(S * B, M, self.steps + 1, C)
        query = rows[:, :C].index_select(0, (question + offsets.unsqueeze(1)).flatten())  # R C
        embedded = [step.contiguous() for step in memory.unbind(2)]  # K+1 times R M C
        empty = empty.view(S * B, M)
        if self.inference == "memn2n":
            query, node = self._hops(embedded, query, empty, linear)
            unary = edge = None
        else:
            query, unary, edge = self._potentials(embedded, query, empty)
            if self.inference == "binary_crf":
                node = chain_marginals(unary, edge).node
            else:
                node = masked_softmax(unary, empty.unsqueeze(1))
            for k in range(self.steps):
                query = query + _weighted(node[:, k], embedded[k + 1])
        answer = query.view(S, B, C) @ self.words[:, :, self.steps].transpose(1, 2)  # S B V
        return Facts(answer, node, unary, edge)

    def _hops(self, embedded: List[Tensor], query: Tensor, empty: Tensor, linear: bool) -> Tuple[Tensor, Tensor]:
        nodes = []
        for k in range(self.steps):
            scores = _products(embedded[k], query)
            weights = scores.masked_fill(empty, 0.0) if linear else masked_softmax(scores, empty)
            nodes.append(weights)
            query = query + _weighted(weights, embedded[k + 1])
        return query, torch.stack(nodes, 1)

    def _potentials(self, embedded: List[Tensor], query: Tensor, empty: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        """The query of the last step, R C, and the potentials."""
        S, C, K = self.words.size(0), query.size(1), self.steps
        scores = [_products(embedded[0], query)]
        for k in range(1, K):
            if self.update is None:
                query = _weighted(scores[-1].masked_fill(empty, 0.0), embedded[k])
            else:
                query = (query.view(S, -1, C) @ self.update.transpose(1, 2)).view(-1, C)
            scores.append(_products(embedded[k], query))  # R M
        R, M = scores[0].shape
        unary, edge = torch.stack(scores, 1), query.new_zeros(R, K - 1, M, M)
        if self.inference == "binary_crf" and K > 1:
            nothing = torch.zeros_like(scores[0])
            first, last = (scores[0], scores[-1]) if self.end_potentials else (nothing, nothing)
            unary = torch.stack([first, *[nothing] * (K - 2), last], 1)
            edge = torch.stack([
                embedded[k] @ embedded[k + 1].transpose(1, 2) + scores[k].unsqueeze(2) + scores[k + 1].unsqueeze(1)
                for k in range(K - 1)
            ], 1)  # R K-1 M M
            edge = edge.masked_fill(torch.eye(M, dtype=torch.bool, device=edge.device), -torch.inf)
        return query, unary.masked_fill(empty.unsqueeze(1), -torch.inf), edge


def _products(facts: Tensor, query: Tensor) -> Tensor:
    """R M: the product of each fact, R M C, with the query, R C."""
    return (facts @ query.unsqueeze(2)).squeeze(2)


def _weighted(weights: Tensor, facts: Tensor) -> Tensor:
    """R C: the sum of facts R M C weighted by R M."""
    return (weights.unsqueeze(1) @ facts).squeeze(1)


@register_model("memory_network", dataclass=MemoryNetworkConfig)
class MemoryNetworkModel(BaseFairseqModel):
    """The network for the task's seeds, vocabulary and memory; evaluation is never in linear start."""

    made_for = ("babi_qa",)

    def __init__(self, network: MemoryNetwork, linear_start: int):
        super().__init__()
        self.network = network
        self.linear_start = linear_start

    @classmethod
    def build_model(cls, cfg: MemoryNetworkConfig, task: Any) -> "MemoryNetworkModel":
        """Raises ValueError for a size or deviation out of range."""
        if cfg.linear_start < 0:
            raise ValueError(f"linear_start: expected 0 or more epochs, got {cfg.linear_start}")
        generators = [torch.Generator().manual_seed(seed) for seed in task.seeds]
        return cls(MemoryNetwork(cfg, len(task.vocabulary), task.cfg.memory, generators), cfg.linear_start)

    def forward(self, sentences: Tensor, facts: Tensor, question: Tensor, epoch: int) -> Facts:
        """As `MemoryNetwork.forward`; epoch: counted from 1."""
        return self.network(sentences, facts, question, self.training and epoch <= self.linear_start)

    def get_normalized_probs(
        self, net_output: Facts, log_probs: bool, sample: Optional[Dict[str, Any]] = None
    ) -> Tensor:
        """S B V: probabilities of the answers, or their logarithms."""
        return net_output.answer.log_softmax(-1) if log_probs else net_output.answer.softmax(-1)

    def best_facts(self, net_output: Facts) -> Tensor:
        """S B K long: the most probable facts, as places among the remembered ones; -1 where there are none.

        For a CRF the most probable sequence, for MemN2N the most probable fact of each step.
        """
        S, B = net_output.answer.shape[:2]
        if self.network.inference == "memn2n":
            none = (net_output.node == 0).all(2)
            return net_output.node.argmax(2).masked_fill(none, -1).view(S, B, -1)
        return chain_best_path(net_output.unary, net_output.edge).states.view(S, B, -1)


preset("memory_network", "memn2n", "MemN2N: a softmax over the facts at each step alone.", inference="memn2n")
preset("memory_network", "memory_binary_crf", "The chain CRF with pairwise potentials.", inference="binary_crf")
preset("memory_network", "memory_unary_crf", "The CRF without pairwise potentials.", inference="unary_crf")
