"""Pretraining of the syntactic attention of `decomposable_attention` on a treebank (Kim et al. 2017, section 4.4, A.5).

One epoch of maximum likelihood of the trees by Adam (learning rate 0.01, betas 0.9 and 0.999).  Words that the folder's
vocabulary does not have share one vector; sentences whose trees are not projective have no probability and are left
out.  `python -m seqstruct.data.nli.parser_pretraining --help`; the file goes to --pretrained-parser.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqstruct.command import module_parser, run_module
from seqstruct.data.arguments import SEED, at_least
from seqstruct.data.files import atomic_write
from seqstruct.data.parsing.sentence import crossing_arc, tree_of
from seqstruct.data.text.conllu import read_conllu
from seqstruct.models.sentences.decomposable_attention import DecomposableAttentionConfig, DecomposableAttentionModel
from seqstruct.tasks.nli import NLIConfig, NLITask


class Parsed(NamedTuple):
    """Word ids and heads of one sentence, long."""

    tokens: Tensor
    heads: Tensor


def read_treebank(path: str, vocabulary: dict[str, int], lowercase: bool, longest: int) -> list[Parsed]:
    """The projective trees of a CoNLL-U file of at most so many words.  Raises ValueError if there is none."""
    unknown = len(vocabulary) + 1
    found = []
    for sentence in read_conllu(path):
        if len(sentence.tokens) <= longest and crossing_arc(tree_of(sentence).heads) is None:
            words = [token.form.lower() if lowercase else token.form for token in sentence.tokens]
            tokens = torch.tensor([vocabulary.get(word, unknown) for word in words])
            found.append(Parsed(tokens, torch.tensor(sentence.heads)))
    if not found:
        raise ValueError(f"{path}: expected projective trees of at most {longest} words, found none")
    return found


def pretrain(
    model: DecomposableAttentionModel, sentences: Sequence[Parsed], *, batch_size: int, seed: int
) -> tuple[float, float]:
    """Train keys and scorer for one epoch; the negative log-likelihood of a word's head in the first and the last fifth
    of the batches comes back, in nats.

    Raises ValueError unless the attention inside the sentence is `dependency`.
    """
    if model.intra is None or not hasattr(model.intra.mechanism, "log_likelihood"):
        raise ValueError("only the attention dependency has a likelihood of trees")
    parser = model.intra
    optimizer = torch.optim.Adam(parser.parameters(), lr=0.01, betas=(0.9, 0.999))
    order = torch.randperm(len(sentences), generator=torch.Generator().manual_seed(seed)).tolist()
    losses = []
    parser.train()
    for start in range(0, len(order), batch_size):
        chosen = [sentences[i] for i in order[start : start + batch_size]]
        tokens = pad_sequence([s.tokens for s in chosen], batch_first=True)
        heads = pad_sequence([s.heads for s in chosen], batch_first=True)
        likelihood = parser.mechanism.log_likelihood(parser.words(tokens), heads, tokens == 0).sum()
        words = int((tokens != 0).sum())
        optimizer.zero_grad()
        (-likelihood / words).backward()
        optimizer.step()
        losses.append(-float(likelihood.detach()) / words)
    fifth = max(1, len(losses) // 5)
    return sum(losses[:fifth]) / fifth, sum(losses[-fifth:]) / fifth


def _run(args: argparse.Namespace) -> None:
    at_least(args, command=True, batch_size=1, longest=1)
    torch.manual_seed(args.seed)
    task = NLITask.setup_task(NLIConfig(data=args.data))
    cfg = DecomposableAttentionConfig(
        intra_attention=args.intra_attention, hidden_size=args.hidden_size, word_dim=args.word_dim
    )
    model = DecomposableAttentionModel.build_model(cfg, task)
    sentences = read_treebank(args.treebank, task.vocabulary, task.lowercase, args.longest)
    first, last = pretrain(model, sentences, batch_size=args.batch_size, seed=args.seed)
    with atomic_write(Path(args.out), "wb") as stream:
        kept = {k: v for k, v in model.intra.state_dict().items() if not k.endswith("root_value")}
        torch.save(kept, stream)
    print(f"{len(sentences)} trees, {first:.3f} nats a word at first, {last:.3f} at last")


def main(argv: Sequence[str] | None = None) -> int:
    defaults = DecomposableAttentionConfig()
    parser = module_parser("seqstruct.data.nli.parser_pretraining", __doc__)
    parser.add_argument("data", metavar="DIR", help="folder of data-prep/snli.sh, for vocabulary and word vectors")
    parser.add_argument("--treebank", required=True, metavar="FILE", help="trees in CoNLL-U")
    parser.add_argument("--out", required=True, metavar="FILE", help="file to write")
    parser.add_argument("--intra-attention", default="dependency(hidden_size=100)", metavar="MECHANISM")
    parser.add_argument("--hidden-size", type=int, default=defaults.hidden_size, metavar="N", help="of the model")
    parser.add_argument("--word-dim", type=int, default=defaults.word_dim, metavar="N", help="of the model")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N")
    parser.add_argument("--longest", type=int, default=60, metavar="N", help="words of a sentence (default 60)")
    parser.add_argument("--seed", type=SEED, default=1, metavar="N")
    return run_module(parser, argv, _run)


if __name__ == "__main__":
    raise SystemExit(main())
