"""`joint_parser`: a parser inside a network, trained with it (Peng 2022, chapter 2: SPIGOT).

Three parsers, of which the data folder chooses: an arc-factored dependency parser (Kiperwasser and Goldberg 2016) where
it has trees, a first-order semantic dependency parser (NeurboParser, Peng et al. 2017) for each formalism of graphs,
and a classifier of sentences.  Where `intermediate` names a structure, the words of the end task see their heads in it
(eq. 2.7), and `gradient` says how the end task's loss reaches the intermediate parser, as in
`seqstruct.ops.trees.surrogate`: the best tree or graph with no, a straight-through or a projected gradient, or
marginals.
Without trees in the folder the intermediate tree is latent.  No parameters are shared between the parsers but, where
asked for, an encoder of all formalisms beside each one's own (FREDA, Peng et al. 2017).

Deviations: mini-batches; the root is a token of the encoder; of FREDA3 the scores of arcs across formalisms are left
out, so graphs are decoded one formalism at a time; the pruner has one score for each arc.
"""

from dataclasses import dataclass
from typing import Any, Dict, NamedTuple, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn

from seqstruct.attention.dropout import Dropout
from seqstruct.bridge.options import flag
from seqstruct.data.arguments import at_least
from seqstruct.layers.parsing import PairScorer, TokenEncoder, WordScorer, possible_labels, real_words, word_mask
from seqstruct.layers.recurrent import check_rate
from seqstruct.models.presets import preset
from seqstruct.ops.trees import (
    GRADIENTS,
    best_graph,
    dependency_argmax,
    graph_parts,
    project_labeled_arcs,
    projective_best_tree,
    structured_argmax,
)

INTERMEDIATE = ("none", "tree", "graph")
SIZES = (  # options of 1 or more
    "word_dim", "lstm_size", "lstm_layers", "mlp_size", "role_dim", "classifier_lstm_size", "classifier_mlp_size",
)


@dataclass
class JointParserConfig(FairseqDataclass):
    """One flat set of options for the command line and YAML."""

    intermediate: ChoiceEnum(INTERMEDIATE) = flag(
        "none", "structure that the end task sees: none, tree (for graphs or classes), graph"
    )
    gradient: ChoiceEnum(GRADIENTS) = flag(
        "spigot", "how the end task trains the intermediate parser: pipeline (not at all), ste, spigot, or marginal "
                  "(of trees)"
    )
    step_size: float = flag(1.0, "eta of SPIGOT's update and of ste's, > 0")
    word_dim: int = flag(100, "size of word embeddings, 1 or more")
    lemma_dim: int = flag(50, "size of lemma embeddings, 0 for none")
    tag_dim: int = flag(50, "size of embeddings of part-of-speech tags, 0 for none")
    lstm_size: int = flag(200, "units of each direction of each parser's LSTM, 1 or more")
    lstm_layers: int = flag(2, "layers of each parser's LSTM, 1 or more")
    mlp_size: int = flag(100, "hidden units of each scorer, 1 or more")
    dropout: float = flag(0.0, "dropout of embeddings and states, in [0, 1)")
    shared_encoder: bool = flag(False, "an encoder of all formalisms beside each one's own, for two or more")
    prune_below: float = flag(0.0, "leave out graph arcs to which the pruner gives less probability; 0: no pruner")
    role_dim: int = flag(50, "size of the embeddings of roles that a classifier sees, 1 or more")
    classifier_lstm_size: int = flag(150, "units of each direction of the classifier's LSTM, 1 or more")
    classifier_mlp_size: int = flag(150, "hidden units of the classifier, 1 or more")
    classifier_dropout: float = flag(0.2, "dropout of the classifier's sum, in [0, 1)")
    classifier_embedding_dropout: Optional[float] = flag(
        None, "dropout of the classifier's embeddings, in [0, 1); its states then have none (default: --dropout, both)"
    )


class Trees(NamedTuple):
    """arcs: B N N, scores.  parts: B N N, the 0/1 arcs of the best tree (or marginals) as the end task sees them."""

    arcs: Tensor
    parts: Optional[Tensor]


class Graphs(NamedTuple):
    """Scores: heads B N, arcs B N N, labels B N N L; possible: B N N L bool.

    trees: what the intermediate parser said, or None.  pruner: B N N, log odds that there is an arc, or None.
    """

    heads: Tensor
    arcs: Tensor
    labels: Tensor
    possible: Tensor
    trees: Optional[Trees] = None
    pruner: Optional[Tensor] = None


class Classes(NamedTuple):
    """logits: B K.  structure: the intermediate trees or graphs, or None."""

    logits: Tensor
    structure: Any = None


@register_model("joint_parser", dataclass=JointParserConfig)
class JointParser(BaseFairseqModel):
    """The parsers and the classifier that the corpora of a folder need.

    kinds: of the corpora, by name; labels: of graphs and classes; entries: of the dictionaries; padding: their index.
    """

    made_for = ("joint_parsing",)

    def __init__(
        self, cfg: JointParserConfig, *, kinds: Dict[str, str], labels: Dict[str, int],
        deterministic: Dict[str, Tensor], entries: tuple, padding: int,
    ):
        super().__init__()
        self.kinds = dict(kinds)
        self.intermediate = str(cfg.intermediate)
        self.gradient, self.step_size, self.prune_below = str(cfg.gradient), cfg.step_size, cfg.prune_below
        graphs = [name for name, kind in kinds.items() if kind == "graphs"]
        self.graph_corpus = graphs[0] if graphs else ""
        self._check(cfg, graphs)
        sizes = (cfg.word_dim, cfg.lemma_dim, cfg.tag_dim)

        def encoder(hidden_size: int, layers: int, given: tuple = sizes, **rates: float) -> TokenEncoder:
            rates = {"dropout": cfg.dropout, **rates}
            return TokenEncoder(entries, given, padding, hidden_size=hidden_size, layers=layers, **rates)

        self.tree_encoder = self.tree_arcs = self.shared_encoder = self.classifier = None
        if self.intermediate == "tree" or "trees" in kinds.values():
            self.tree_encoder = encoder(cfg.lstm_size, cfg.lstm_layers)
            self.tree_arcs = PairScorer(self.tree_encoder.output_size, cfg.mlp_size)
        if cfg.shared_encoder:
            self.shared_encoder = encoder(cfg.lstm_size, cfg.lstm_layers)
        self.graph_encoders, self.graph_scorers = nn.ModuleDict(), nn.ModuleDict()
        self.pruner_encoders, self.pruners = nn.ModuleDict(), nn.ModuleDict()
        for name in graphs:
            self.graph_encoders[name] = encoder(cfg.lstm_size, cfg.lstm_layers)
            size = self.graph_encoders[name].output_size * (2 if cfg.shared_encoder else 1)
            if self.intermediate == "tree" and "classes" not in kinds.values():
                size *= 2
            self.graph_scorers[name] = nn.ModuleDict({
                "heads": WordScorer(size, cfg.mlp_size), "arcs": PairScorer(size, cfg.mlp_size),
                "labels": PairScorer(size, cfg.mlp_size, labels[name]),
            })
            self.register_buffer(f"deterministic_{name}", deterministic[name], persistent=False)
            if cfg.prune_below:
                self.pruner_encoders[name] = encoder(cfg.mlp_size, 1)
                self.pruners[name] = PairScorer(self.pruner_encoders[name].output_size, cfg.mlp_size)
        for name, kind in kinds.items():
            if kind == "classes":
                rate = cfg.classifier_embedding_dropout
                rates = {} if rate is None else {"dropout": rate, "state_dropout": 0.0}
                own = encoder(cfg.classifier_lstm_size, 1, (cfg.word_dim, 0, 0), **rates)
                self.classifier = Classifier(own, cfg, labels.get(self.graph_corpus, 0), labels[name])

    def _check(self, cfg: JointParserConfig, graphs: list) -> None:
        classes = [name for name, kind in self.kinds.items() if kind == "classes"]
        if self.intermediate == "graph" and not (graphs and classes):
            raise ValueError("--intermediate graph: expected a folder with graphs and classes, got " + str(self.kinds))
        if self.intermediate == "tree" and not (graphs or classes):
            raise ValueError("--intermediate tree: expected a folder with graphs or classes, got " + str(self.kinds))
        if self.intermediate == "graph" and self.gradient == "marginal":
            raise ValueError("--gradient marginal: marginals of graphs under determinism are not tractable; use tree")
        if cfg.shared_encoder and len(graphs) < 2:
            raise ValueError(f"--shared-encoder: expected two formalisms or more, got {len(graphs)}")
        at_least(cfg, **dict.fromkeys(SIZES, 1), lemma_dim=0, tag_dim=0)
        for name in ("dropout", "classifier_dropout", "classifier_embedding_dropout"):
            check_rate(name, getattr(cfg, name) or 0.0)
        if not cfg.step_size > 0:
            raise ValueError(f"step_size: expected a number above 0, got {cfg.step_size}")
        if not 0 <= cfg.prune_below < 1:
            raise ValueError(f"--prune-below: expected a probability in [0, 1), got {cfg.prune_below}")

    @classmethod
    def build_model(cls, cfg: JointParserConfig, task: Any) -> "JointParser":
        """What the task's folder needs.  Raises ValueError if the options do not fit it."""
        return cls(
            cfg, kinds=task.kinds, labels={name: len(entries) for name, entries in task.labels.items()},
            deterministic=task.deterministic, entries=tuple(len(d) for d in task.dictionaries),
            padding=task.dictionaries.words.pad(),
        )

    def take_parsers(self, state: Dict[str, Tensor], name: str) -> None:
        """Copy the parsers of another joint_parser's state; the classifier stays as it is.  name: of the state.

        Raises ValueError if it has no parser that this model has, or has one in another shape.
        """
        own = {key: value for key, value in self.state_dict().items() if not key.startswith("classifier.")}
        shared = {key: state[key] for key in own if key in state}
        if not shared:
            raise ValueError(f"{name}: expected a parser of this model, got " + ", ".join(sorted(state)[:3]))
        for key, value in shared.items():
            if value.shape != own[key].shape:
                raise ValueError(f"{name}: {key} has the shape {tuple(value.shape)}, expected {tuple(own[key].shape)}")
        self.load_state_dict(shared, strict=False)

    def forward(self, batches: Dict[str, Dict[str, Tensor]]) -> Dict[str, Any]:
        """Trees, Graphs or Classes for each corpus in the batch, by name; batches as `Union.collater` gives them."""
        run = {"trees": self.parse_trees, "graphs": self.parse_graphs, "classes": self.classify}
        found = {}
        for name, batch in batches.items():
            tokens, padding_mask = batch["tokens"], batch["padding_mask"]
            kind = self.kinds[name]
            found[name] = run[kind](tokens, padding_mask, **({"name": name} if kind == "graphs" else {}))
        return found

    def parse_trees(self, tokens: Tensor, padding_mask: Tensor, *, decode: bool = False) -> Trees:
        """Arc scores, and with `decode` the tree with its surrogate gradient."""
        arcs = self.tree_arcs(self.tree_encoder(tokens, padding_mask)).squeeze(-1)
        if not decode:
            return Trees(arcs, None)
        parts = dependency_argmax(arcs, word_mask(padding_mask), gradient=self.gradient, step_size=self.step_size)
        return Trees(arcs, parts)

    def parse_graphs(self, tokens: Tensor, padding_mask: Tensor, *, name: str) -> Graphs:
        """Scores of one formalism's graphs; with the pruner's, and with the heads of the tree where it is seen."""
        states = self.graph_encoders[name](tokens, padding_mask)
        if self.shared_encoder is not None:
            states = torch.cat([states, self.shared_encoder(tokens, padding_mask)], -1)
        trees = None
        if self.intermediate == "tree" and self.classifier is None:
            trees = self.parse_trees(tokens, padding_mask, decode=True)
            states = torch.cat([states, trees.parts.to(states.dtype).transpose(1, 2) @ states], -1)  # eq. 2.7
        scorers = self.graph_scorers[name]
        labels = scorers["labels"](states)
        possible = possible_labels(padding_mask, labels.size(-1))
        pruner = None
        if self.prune_below:
            pruner = self.pruners[name](self.pruner_encoders[name](tokens, padding_mask)).squeeze(-1)
            possible = possible & (pruner.detach().sigmoid() >= self.prune_below).unsqueeze(-1)
        return Graphs(
            scorers["heads"](states).squeeze(-1), scorers["arcs"](states).squeeze(-1), labels, possible, trees, pruner
        )

    def classify(self, tokens: Tensor, padding_mask: Tensor) -> Classes:
        """Classes of sentences, from the words and the intermediate structure."""
        if self.intermediate == "none":
            return Classes(self.classifier(tokens, padding_mask))
        if self.intermediate == "tree":
            trees = self.parse_trees(tokens, padding_mask, decode=True)
            return Classes(self.classifier(tokens, padding_mask, trees.parts), trees)
        graphs = self.parse_graphs(tokens, padding_mask, name=self.graph_corpus)
        parts = self._graph_parts(graphs)
        return Classes(self.classifier(tokens, padding_mask, parts[..., 0], parts[..., 1:]), graphs)

    def _graph_parts(self, graphs: Graphs) -> Tensor:
        """B N N L: arcs, then labels but `<top>`, of the best graph; the root's arcs are 0."""
        outside = ~graphs.possible[..., 1:].any(-1, keepdim=True)  # B N N 1
        deterministic = getattr(self, f"deterministic_{self.graph_corpus}")

        def decode(scores: Tensor) -> Tensor:
            chosen = best_graph(graphs.heads.detach(), graphs.arcs.detach(), graphs.labels.detach(), graphs.possible,
                                deterministic)
            _, _, labeled = graph_parts(chosen, graphs.labels.size(-1))
            labeled = labeled[..., 1:]
            return torch.cat([labeled.sum(-1, keepdim=True), labeled], -1)

        def project(point: Tensor) -> Tensor:
            arcs, labels = project_labeled_arcs(point[..., 0], point[..., 1:])
            return torch.cat([arcs.unsqueeze(-1), labels], -1)

        scores = torch.cat([graphs.arcs.unsqueeze(-1), graphs.labels[..., 1:]], -1).masked_fill(outside, 0.0)
        return structured_argmax(scores, decode, gradient=self.gradient, project=project, step_size=self.step_size)

    @torch.no_grad()
    def best(self, name: str, found: Any, padding_mask: Tensor) -> Tensor:
        """Predictions from what `forward` gave for a corpus; long.

        Trees: heads B N-1, -1 at padding.  Graphs: labels B N N, -1 without an arc.  Classes: B.
        """
        if isinstance(found, Trees):
            return projective_best_tree(found.arcs, word_mask(padding_mask)).heads
        if isinstance(found, Graphs):
            deterministic = getattr(self, f"deterministic_{name}")
            return best_graph(found.heads, found.arcs, found.labels, found.possible, deterministic)
        return found.logits.argmax(-1)


class Classifier(nn.Module):
    """BiLSTM states, beside the averaged heads and roles of each word, summed and read by a ReLU perceptron.

    roles: labels of the graphs, `<top>` included.
    """

    def __init__(self, encoder: TokenEncoder, cfg: JointParserConfig, roles: int, classes: int):
        super().__init__()
        self.encoder = encoder
        size = encoder.output_size
        intermediate = str(cfg.intermediate)
        self.roles = nn.Linear(roles - 1, cfg.role_dim, bias=False) if intermediate == "graph" else None
        self.join = None
        if intermediate != "none":
            self.join = nn.Linear(2 * size + (cfg.role_dim if self.roles is not None else 0), size)
        self.output = nn.Sequential(
            Dropout(cfg.classifier_dropout), nn.Linear(size, cfg.classifier_mlp_size), nn.ReLU(),
            nn.Linear(cfg.classifier_mlp_size, classes),
        )

    def forward(
        self, tokens: Tensor, padding_mask: Tensor, arcs: Optional[Tensor] = None, labels: Optional[Tensor] = None
    ) -> Tensor:
        """Logits B K.  arcs: B N N, 0/1 or soft, [b, h, m] from head h; labels: B N N L-1 of the same arcs, or None."""
        states = self.encoder(tokens, padding_mask)
        if self.join is not None:
            arcs = arcs.to(states.dtype)
            count = arcs.sum(1).clamp(min=1).unsqueeze(-1)  # of a word's heads
            seen = [states, arcs.transpose(1, 2) @ states / count]
            if self.roles is not None:
                seen.append(self.roles(labels.to(states.dtype).sum(1)) / count)
            states = torch.relu(self.join(torch.cat(seen, -1)))
        return self.output((states * real_words(padding_mask).unsqueeze(-1)).sum(1))


preset("joint_parser", "joint_parser_small", "One-layer encoders and scorers of 100 units, for small corpora.",
       lstm_size=100, mlp_size=100, classifier_lstm_size=100, classifier_mlp_size=100, lstm_layers=1, dropout=0.2)
preset("joint_parser", "joint_parser_sentiment",
       "Peng (2022), appendix C.1.2: GloVe's size of words and SPIGOT's step for batches of 32.",
       word_dim=300, step_size=5 / 32, intermediate="graph")
