"""What fairseq gets wrong in diverse beam search, with n-grams that may not come again, where references are scored by
ensembles or aligned, and options of decoding that it takes where they do nothing."""

from __future__ import annotations

from typing import Any, Callable

import torch
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.search import DiverseBeamSearch
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks.fairseq_task import FairseqTask
from torch import Tensor

from seqstruct.bridge.options import spelled
from seqstruct.bridge.passes import collect_readings
from seqstruct.bridge.patches.patch import patch
from seqstruct.bridge.search_options import REAL, WHOLE, check_numbers

STEPWISE = ("print_step", "retain_iter_history")  # of models that refine a whole translation
# options of a hypothesis's score that references are scored without, and their defaults
SCORING = {"unnormalized": False, "lenpen": 1, "unkpen": 0.0, "temperature": 1.0, "lm_path": None}


@patch(DiverseBeamSearch, "step")
def step(
    original: Callable, self: DiverseBeamSearch, step: int, lprobs: Tensor, scores: Tensor,
    prev_output_tokens: Tensor | None = None, original_batch_idxs: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """What groups have in common is kept by places in the batch and looked up by the numbers of sentences."""
    if original_batch_idxs is not None:
        if step == 0:
            self.sentences = original_batch_idxs
        original_batch_idxs = original_batch_idxs[:, None].eq(self.sentences).long().argmax(1)
    return original(self, step, lprobs, scores, prev_output_tokens, original_batch_idxs)


@patch(NGramRepeatBlock, "forward")
def block_repeated(
    _: Callable, self: NGramRepeatBlock, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int
) -> Tensor:
    """--no-repeat-ngram-size does nothing on a CPU: n-grams are looked for behind the end of what was generated.

    Log-probabilities rows N after `step` symbols of tokens rows L, whose first is none of them; a row that would have
    no symbol left, as where a prefix repeats itself, stays as it is.
    """
    length = self.no_repeat_ngram_size
    if step < length:
        return lprobs
    found = tokens[:, 1 : step + 1].unfold(1, length, 1)  # rows step-length+1 length
    again = found[..., :-1].eq(tokens[:, None, step + 2 - length : step + 1]).all(2)
    rows, places = again.nonzero(as_tuple=True)
    blocked = lprobs.index_put((rows, found[rows, places, -1]), lprobs.new_tensor(-torch.inf))
    return torch.where(blocked.gt(-torch.inf).any(1, keepdim=True), blocked, lprobs)


class _Attending:
    """A model whose output says that there are no attention weights by None alone."""

    def __init__(self, model: Any):
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def __call__(self, **inputs: Any) -> Any:
        output, *rest = self.model(**inputs)
        if rest and isinstance(rest[0], dict) and isinstance(rest[0].get("attn"), list) and rest[0]["attn"][0] is None:
            rest[0] = {**rest[0], "attn": None}
        return output, *rest


@patch(SequenceScorer, "generate")
def generate(original: Callable, self: SequenceScorer, models: list[Any], sample: Any, **named: Any) -> Any:
    """Where a model has attention and another one none their weights are added, and models that keep weights where they
    are asked for are not asked.

    Raises ValueError if there are no references, or if an alignment is wanted of models without attention, or a soft
    one, which is not made here.
    """
    if sample.get("target") is None:
        raise ValueError("--score-reference needs references: fairseq-generate reads them from data of both languages")
    if str(self.compute_alignment) == "soft":
        raise ValueError("--score-reference goes with --print-alignment hard, not soft")
    if not self.compute_alignment:
        return original(self, list(map(_Attending, models)), sample, **named)
    with collect_readings():
        found = original(self, list(map(_Attending, models)), sample, **named)
    if any(hypothesis["alignment"] is None for hypotheses in found for hypothesis in hypotheses):
        raise ValueError("an alignment needs a model with attention to the source")
    return found


@patch(FairseqTask, "build_generator")
def build_generator(
    build: Callable, self: FairseqTask, models: Any, args: Any, seq_gen_cls: Any = None,
    extra_gen_cls_kwargs: Any = None, *rest: Any, **named: Any,
) -> Any:
    """Options that do nothing: those of other decoders, which end in a KeyError, those of scores beside
    --score-reference, and in fairseq-interactive a language model and prefixes; soft alignments fail there.  Numbers
    that mean nothing, as a --lenpen of NaN, give hypotheses in any order, or fail somewhere inside.
    """
    check_numbers({name: getattr(args, name) for name in (*WHOLE, *REAL) if hasattr(args, name)},
                  len(self.target_dictionary), spelled)
    if getattr(args, "diversity_rate", -1) > -1 and 2 * args.beam > len(self.target_dictionary):
        raise ValueError(f"--diversity-rate takes the 2 * {args.beam} best symbols of each hypothesis (--beam), of "
                         f"{len(self.target_dictionary)} that there are")
    for option in STEPWISE:
        if getattr(args, option, False):
            raise ValueError(f"{spelled(option)} is of models that refine a translation in steps, not of "
                             "beam search")
    if getattr(args, "score_reference", False):
        for option, default in SCORING.items():
            if getattr(args, option, default) != default:
                raise ValueError("--score-reference gives the mean log-probability of a model's symbols; "
                                 f"{spelled(option)} does nothing beside it")
    elif "lm_model" not in (extra_gen_cls_kwargs or {}):  # which fairseq-generate alone gives, None where it has none
        for option, what in {"lm_path": "a language model", "prefix_size": "prefixes, of references"}.items():
            if getattr(args, option, None):
                raise ValueError(f"{spelled(option)}: fairseq-generate alone reads {what}")
        if str(getattr(args, "print_alignment", None)) == "soft":
            raise ValueError("--print-alignment soft: fairseq-generate alone prints soft alignments")
    return build(self, models, args, seq_gen_cls, extra_gen_cls_kwargs, *rest, **named)
