"""Translation decoded as in GNMT: length normalisation, coverage penalty, pruning, 8-bit inference (Wu et al. 2016).

The task is fairseq's `translation` in all but `fairseq-generate` and `fairseq-interactive`; a model of either task is
decoded by the other:

    fairseq-generate data-bin/multi30k/bin --user-dir "$(seqstruct path)" --task translation_gnmt \\
        --length-alpha 0.2 --coverage-beta 0.2 --path runs/gnmt/checkpoint_best.pt --beam 8

The scores in its output are those of eq. 14, as fairseq prints them, in bits.  Formulas: seqstruct/bridge/decoding.py;
8-bit inference: seqstruct/models/rnn_translation/eight_bit.py.  The source's wordpieces are served by SentencePiece
(`--subwords sentencepiece` in `data-prep/`).
"""

from dataclasses import dataclass
from typing import Any, Dict, Optional

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from seqstruct.bridge.decoding import TranslationGenerator
from seqstruct.bridge.options import flag, spelled


@dataclass
class GNMTTranslationConfig(TranslationConfig):
    length_alpha: float = flag(0.2, "exponent of the length normalisation, 0 or more; 0 for none")
    coverage_beta: float = flag(0.2, "weight of the coverage penalty, 0 or more; 0 for none")
    beam_pruning: float = flag(
        0.0, "width in nats within which symbols and finished hypotheses are kept, above 0; 0 for no pruning (3 in the "
             "source)"
    )
    eight_bit: bool = flag(False, "weight matrices of a recurrent model as 8-bit integers; on a CPU")


@register_task("translation_gnmt", dataclass=GNMTTranslationConfig)
class GNMTTranslationTask(TranslationTask):
    """Translation decoded with length normalisation, coverage penalty and pruning, also in 8 bits (Wu et al. 2016)."""

    cfg: GNMTTranslationConfig

    def build_generator(
        self, models: Any, args: Any, seq_gen_cls: Any = None, extra_gen_cls_kwargs: Optional[Dict[str, Any]] = None,
        **options: Any,
    ) -> Any:
        """The generator; with --eight-bit, the models are quantised in place.

        Raises ValueError on options that are negative, NaN or infinite, on fairseq's own normalisation, which these
        scores are without, and with --eight-bit on models that it does not serve.
        """
        if self.cfg.eight_bit:
            from seqstruct.models.rnn_translation.eight_bit import quantize

            for model in models:
                quantize(model)
        if not getattr(args, "score_reference", False) and seq_gen_cls is None:
            alignment = getattr(args, "print_alignment", None)
            if alignment is None and getattr(args, "replace_unk", None) is not None:
                alignment = "hard"
            for name, default in {"lenpen": 1, "unnormalized": False}.items():
                if getattr(args, name, default) != default:
                    raise ValueError(f"{spelled(name)} does nothing in --task translation_gnmt, whose scores "
                                     "--length-alpha normalizes")
            seq_gen_cls = TranslationGenerator
            extra_gen_cls_kwargs = {
                **(extra_gen_cls_kwargs or {}),
                "penalties": (self.cfg.length_alpha, self.cfg.coverage_beta),
                "pruning": self.cfg.beam_pruning,
                "alignment": None if alignment is None else str(alignment),
            }
        return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, **options)
