"""Figure 5 of Structured Attention Networks: which facts a trained CRF chooses for one bAbI question.

Nodes are the facts at each step, edges between them the marginal probabilities of pairs; what carries less than a
hundredth is not drawn.  The most probable sequences are printed.

    python -m seqstruct.plots.facts RUN/checkpoints/checkpoint_last.pt --data DIR --question 3 --out FILE
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure

from seqstruct.bridge.quiet import quiet
from seqstruct.command import module_parser, run_module
from seqstruct.data.babi.stories import Question, read_questions
from seqstruct.ops.chains import chain_marginals
from seqstruct.plots.figures import plain, save
from seqstruct.scoring.trained import load_model

FAINTEST = 0.01


class Chosen(NamedTuple):
    """What the model does with a question of n facts, the oldest first.

    node: K n; edge: K-1 n n, marginals.  sequences: (facts counted from 1, probability), the most probable first.
    answer: what the model says.
    """

    node: torch.Tensor
    edge: torch.Tensor
    sequences: list[tuple[tuple[int, ...], float]]
    answer: str


def choose(model: torch.nn.Module, task: object, split: str, question: int, seed: int) -> Chosen:
    """One question of a split, counted from 1, by the model of one seed.

    Raises ValueError for MemN2N, which has no marginals of pairs, a seed it has not, or a question that is not there.
    """
    task.load_dataset(split)
    dataset = task.datasets[split]
    if seed not in task.seeds:
        raise ValueError(f"expected a seed of {task.seeds[0]} .. {task.seeds[-1]}, got {seed}")
    if not 1 <= question <= len(dataset):
        raise ValueError(f"expected a question of 1 .. {len(dataset)}, got {question}")
    row = task.seeds.index(seed)
    place = dataset.order[row].tolist().index(question - 1)  # of training the order is drawn
    sample = dataset.collater([place])
    with torch.no_grad():
        found = model.eval()(**sample["net_input"])
    if found.unary is None:
        raise ValueError("memn2n has no marginals of pairs of facts")
    n = int((sample["net_input"]["facts"][row, 0] >= 0).sum())
    unary = found.unary[row : row + 1, :, :n].double().flip(2)
    edge = found.edge[row : row + 1, :, :n, :n].double().flip(2, 3)
    node, pair = (x[0] for x in chain_marginals(unary, edge))

    def score(z: tuple[int, ...]) -> float:
        pairs = enumerate(itertools.pairwise(z))
        return float(sum(unary[0, k, i] for k, i in enumerate(z)) + sum(edge[0, k, i, j] for k, (i, j) in pairs))

    scores = {z: score(z) for z in itertools.product(range(n), repeat=unary.size(1))}
    total = torch.tensor(list(scores.values()), dtype=torch.float64).logsumexp(0)
    ranked = sorted(((s, tuple(i + 1 for i in z)) for z, s in scores.items()), reverse=True)[:3]
    words = {number: word for word, number in task.vocabulary.items()}
    answer = words[int(found.answer[row, 0].argmax())]
    return Chosen(node, pair, [(z, float(torch.exp(s - total))) for s, z in ranked], answer)


def draw(question: Question, chosen: Chosen) -> Figure:
    """Facts from the top down, steps from left to right; darkness and width are probability."""
    K, n = chosen.node.shape
    figure = Figure(figsize=(2.6 + 1.7 * K, 0.34 * n + 1.6))
    axes = figure.subplots()
    for k, i, j in itertools.product(range(K - 1), range(n), range(n)):
        p = float(chosen.edge[k, i, j])
        if p > FAINTEST:
            axes.plot([k, k + 1], [i, j], color="black", alpha=min(1.0, 0.1 + p), linewidth=0.4 + 4 * p, zorder=1)
    for k in range(K):
        axes.scatter([k] * n, range(n), s=90, c=1 - chosen.node[k].numpy(), cmap="gray", vmin=0, vmax=1,
                     edgecolors="black", zorder=2)
    facts = question.facts[-n:]
    axes.set_yticks(range(n), [f"{i}  {plain(' '.join(fact))}" for i, fact in enumerate(facts, 1)])
    axes.set_xticks(range(K), [f"$z_{k}$" for k in range(1, K + 1)])
    axes.set_ylim(n - 0.4, -0.6)
    axes.set_xlim(-0.3, K - 0.7)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    numbers = question.numbers[-n:]
    support = [str(numbers.index(s) + 1) if s in numbers else "lost" for s in question.support]
    axes.set_title(
        f"{plain(' '.join(question.question))}?\nanswer {plain(question.answer)}, facts {' → '.join(support)}; "
        f"the model: {plain(chosen.answer)}", fontsize=9,
    )
    return figure


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.plots.facts", __doc__)
    parser.add_argument("checkpoint", metavar="CHECKPOINT")
    parser.add_argument("--data", required=True, metavar="DIR", help="the task's folder (data-prep/babi.sh)")
    parser.add_argument("--split", default="test", choices=("train", "valid", "test"))
    parser.add_argument("--question", type=int, default=1, metavar="N", help="counted from 1 (default 1)")
    parser.add_argument("--seed", type=int, metavar="N", help="whose model (default: the first)")
    parser.add_argument("--out", required=True, metavar="FILE", help="a name that ends in .png, .pdf or .svg")
    return run_module(parser, argv, _run)


def _run(args: argparse.Namespace) -> None:
    with quiet(""):  # fairseq's import opens the root logger to everything
        model, task = load_model(args.checkpoint, args.data)
    seed = task.seeds[0] if args.seed is None else args.seed
    chosen = choose(model, task, args.split, args.question, seed)
    question = read_questions(Path(args.data) / f"{args.split}.txt")[args.question - 1]
    save(draw(question, chosen), args.out)
    for sequence, probability in chosen.sequences:
        print(f"{' -> '.join(map(str, sequence))}  {probability:.4f}")


if __name__ == "__main__":
    raise SystemExit(main())
