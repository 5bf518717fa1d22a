"""Maximum likelihood mixed with expected GLEU (Wu et al. 2016, sec. 5, eq. 7 to 9).

    O_Mixed = alpha O_ML + O_RL,   O_ML = sum_i log P(Y*_i | X_i),   O_RL = sum_i sum_Y P(Y | X_i) GLEU(Y, Y*_i)

The gradient of O_RL is estimated from m translations Y_k of each source, drawn from the model symbol by symbol:

    1/m sum_k (r_k - mean r) grad log P(Y_k | X_i),   r_k = GLEU(Y_k, Y*_i) over 1- to 4-grams of target symbols

The source trains a model of maximum likelihood further with it, without dropout:

    fairseq-train DATA --user-dir "$(seqstruct path)" --arch rnn_gnmt --criterion expected_gleu --dropout 0 \\
        --finetune-from-model runs/gnmt/checkpoint_best.pt --best-checkpoint-metric gleu \\
        --maximize-best-checkpoint-metric --save-dir runs/gnmt-gleu ...

What is drawn depends on the seed, the number of updates and the sentence's place in the corpus alone: not on batches,
workers or processes, and a resumed run draws what an unbroken one does.  Draws are made in evaluation mode; their
log-probabilities are of the mode the model is in.  A draw ends with its end of sentence, or unfinished after twice as
many symbols as its reference has, and 10.  Deviations: where the source subtracts the mean of other draws, the mean of
these m is taken, which makes the expected gradient (m - 1) / m times as long; GLEU is of the symbols trained on; the
encoder's dropout, if there is any, is one for a reference and its draws.

`loss` is -O_Mixed of a sentence, with the mean reward for the expected one; `nll_loss`, of references, in bits a
symbol; `gleu`, the mean reward, 0 to 1.  In validation the draws are the same at all times.

Cost: decoding of m targets a sentence, and a forward and backward pass over one source and m + 1 targets.
"""

import math
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np
import torch
from fairseq.criterions import register_criterion
from fairseq.data.data_utils import collate_tokens
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.models import FairseqIncrementalDecoder
from omegaconf import II
from torch import Tensor

from seqstruct.bridge.options import flag
from seqstruct.criterions.logs import SummedCriterion, summed
from seqstruct.scoring.gleu import sentence_gleu

LONGEST = (2, 10)  # a draw of a reference of n symbols, its end included, has at most 2 n + 10


@dataclass
class ExpectedGleuConfig(FairseqDataclass):
    likelihood_weight: float = flag(0.017, "alpha, weight of the log-likelihood beside the expected GLEU, 0 or more")
    samples: int = flag(15, "m, translations drawn of each source, 2 or more")
    seed: int = II("common.seed")


@register_criterion("expected_gleu", dataclass=ExpectedGleuConfig)
class ExpectedGleu(SummedCriterion):
    """Maximum likelihood mixed with expected GLEU of drawn translations (Wu et al. 2016, eq. 9)."""

    def __init__(self, task: Any, likelihood_weight: float, samples: int, seed: int):
        """Raises ValueError on a weight that is negative, NaN or infinite, a negative seed, or fewer than 2 samples."""
        super().__init__(task)
        if not 0 <= likelihood_weight < math.inf or seed < 0:
            raise ValueError("likelihood_weight and seed: expected finite numbers, 0 or more, got "
                             f"{likelihood_weight} and {seed}")
        if samples < 2:
            raise ValueError(f"samples: expected 2 or more, whose mean is subtracted, got {samples}")
        self.likelihood_weight, self.samples, self.seed = likelihood_weight, samples, seed
        self.eos = task.target_dictionary.eos()
        self.updates = 0

    def set_num_updates(self, num_updates: int) -> None:
        """The number of updates made so far; told before each step of training."""
        self.updates = num_updates

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, int, Dict[str, Any]]:
        """The loss summed over sentences, their number, and the log.

        Raises ValueError if the model cannot decode step by step.
        """
        target = sample["target"]
        sentences, key = target.size(0), self.updates + 1 if model.training else 0
        lengths = (target != self.padding_idx).sum(1).tolist()
        longest = model.max_decoder_positions() - 1
        limits = [min(LONGEST[0] * length + LONGEST[1], longest) for length in lengths]
        uniforms = [
            np.random.default_rng((self.seed, key, identity)).random((self.samples, limit))
            for identity, limit in zip(sample["id"].tolist(), limits, strict=True)
        ]
        drawn = draw(model, sample["net_input"], uniforms, self.eos, self.padding_idx)
        references = self._symbols(target)
        rewards = torch.tensor(
            [[sentence_gleu(self._plain(y), self._plain(reference)) for y in ys]
             for ys, reference in zip(drawn, references, strict=True)],
            dtype=torch.float32, device=target.device,
        )  # B m
        log_probs = self._log_probabilities(model, sample, references, drawn)
        likelihood, of_draws = log_probs[:, 0].sum(), log_probs[:, 1:]
        advantage = rewards - rewards.mean(1, keepdim=True)
        objective = self.likelihood_weight * likelihood + (advantage * of_draws).mean(1).sum()
        gleu = rewards.mean(1).sum()
        value = self.likelihood_weight * likelihood.detach() + gleu
        loss = -objective + (objective.detach() - value)  # the gradient of the estimate, the value of O_Mixed
        log = {
            "loss": loss.detach(), "nll_loss": -likelihood.detach(), "gleu": gleu, "ntokens": sample["ntokens"],
            "nsentences": sentences, "sample_size": sentences,
        }
        return loss, sentences, log

    def _symbols(self, target: Tensor) -> List[Tensor]:
        return [row[row != self.padding_idx] for row in target]

    def _plain(self, symbols: Tensor) -> List[int]:
        return [symbol for symbol in symbols.tolist() if symbol != self.eos]

    def _log_probabilities(
        self, model: Any, sample: Dict[str, Any], references: List[Tensor], drawn: List[List[Tensor]]
    ) -> Tensor:
        """Of each reference and the draws beside it, B (1 + m); one pass, so that gradients of all processes meet once,
        in which each source is encoded once."""
        targets = [y for reference, ys in zip(references, drawn, strict=True) for y in (reference, *ys)]
        rows = torch.arange(len(references), device=references[0].device).repeat_interleave(1 + self.samples)
        target = collate_tokens(targets, self.padding_idx)
        start = target.new_full((len(target), 1), self.eos)
        before = torch.cat([start, target[:, :-1]], 1)
        real = target != self.padding_idx
        with _shared_sources(model, rows, real):
            output = model(**{**sample["net_input"], "prev_output_tokens": before})
        log_probs = model.get_normalized_probs(output, log_probs=True)[0]
        chosen = log_probs.gather(1, target[real][:, None])[:, 0].float()
        return chosen.new_zeros(target.shape).masked_scatter(real, chosen).sum(1).view(len(references), -1)

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        """Log the figures of the module's docstring, and ppl, of references."""
        sums = summed(logging_outputs)
        sentences, tokens = sums.get("nsentences", 0.0), sums.get("ntokens", 0.0)
        if not tokens:
            return
        metrics.log_scalar("loss", sums["loss"] / sentences, sentences, round=5)
        metrics.log_scalar("gleu", sums["gleu"] / sentences, sentences, round=5)
        metrics.log_scalar("nll_loss", sums["nll_loss"] / tokens / math.log(2), tokens, round=5)
        metrics.log_derived("ppl", lambda meters: 2 ** min(meters["nll_loss"].avg, 1000.0))


@contextmanager
def _shared_sources(model: Any, rows: Tensor, real: Tensor) -> Iterator[None]:
    """Within it a pass encodes each source once and decodes it for all of its rows R, with logits 1 n N of the n real
    positions of targets R L alone.  By hooks, so that a model in many processes finds all of it in its own pass."""

    def repeat(encoder: Any, _: Any, encoded: Any) -> Any:
        return encoder.reorder_encoder_out(encoded, rows)

    def only_features(_: Any, given: Tuple[Any, ...], options: Dict[str, Any]) -> Tuple[Any, Any]:
        return given, {**options, "features_only": True} if late else options

    def only_real(decoder: Any, _: Any, output: Tuple[Any, ...]) -> Tuple[Any, ...]:
        found = output[0][real][None]
        return decoder.output_layer(found) if late else found, *output[1:]

    late = "features_only" in signature(model.decoder.forward).parameters
    hooks = [
        model.encoder.register_forward_hook(repeat),
        model.decoder.register_forward_pre_hook(only_features, with_kwargs=True),
        model.decoder.register_forward_hook(only_real),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def draw(model: Any, net_input: Dict[str, Any], uniforms: List[np.ndarray], eos: int, pad: int) -> List[List[Tensor]]:
    """Translations drawn from the model, m of each sentence; each ends in eos or has as many symbols as it may.

    uniforms: of each sentence m L numbers in [0, 1), one for each symbol of its at most L.  pad is never drawn.  The
    model is in evaluation mode meanwhile.  Raises ValueError without an encoder, or if its decoder is not incremental.
    """
    if not hasattr(model, "encoder") or not isinstance(getattr(model, "decoder", None), FairseqIncrementalDecoder):
        raise ValueError("expected_gleu needs a translation model that decodes step by step")
    device, samples = net_input["src_tokens"].device, len(uniforms[0])
    width = max(u.shape[1] for u in uniforms)
    numbers = torch.zeros(len(uniforms), samples, width, dtype=torch.float64)
    for row, u in enumerate(uniforms):
        numbers[row, :, : u.shape[1]] = torch.from_numpy(u)
    numbers = numbers.flatten(0, 1).to(device)  # R L
    limits = torch.tensor([u.shape[1] for u in uniforms], device=device).repeat_interleave(samples)
    training = model.training
    model.eval()
    try:
        tokens = _decode(model, net_input, numbers, limits, samples, eos, pad)
    finally:
        model.train(training)
    found = [row[row != pad] for row in tokens]
    return [found[start : start + samples] for start in range(0, len(found), samples)]


def _decode(
    model: Any, net_input: Dict[str, Any], numbers: Tensor, limits: Tensor, samples: int, eos: int, pad: int
) -> Tensor:
    """R L symbols, padded on the right."""
    rows = torch.arange(len(numbers), device=numbers.device)
    encoded = model.encoder.forward_torchscript(net_input)
    encoded = model.encoder.reorder_encoder_out(encoded, rows // samples)
    tokens = torch.full((len(rows), numbers.size(1) + 1), pad, device=numbers.device)
    tokens[:, 0] = eos
    state = {}
    for t in range(numbers.size(1)):
        output = model.decoder(tokens[rows, : t + 1], encoder_out=encoded, incremental_state=state)
        probabilities = model.get_normalized_probs(output, log_probs=False)[:, -1].double()
        probabilities[:, pad] = 0.0
        cumulative = probabilities.cumsum(1)
        chosen = torch.searchsorted(cumulative, numbers[rows, t : t + 1] * cumulative[:, -1:], right=True)[:, 0]
        tokens[rows, t + 1] = chosen.clamp_(max=probabilities.size(1) - 1)
        kept = ((chosen != eos) & (limits[rows] > t + 1)).nonzero()[:, 0]
        if not len(kept):
            break
        if len(kept) < len(rows):  # what has ended is not decoded on
            rows = rows[kept]
            encoded = model.encoder.reorder_encoder_out(encoded, kept)
            model.decoder.reorder_incremental_state_scripting(state, kept)
    return tokens[:, 1:]
