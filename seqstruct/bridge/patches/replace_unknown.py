"""Unknown words replaced by the source word attended to (Luong et al. 2015, sec. 4.1): fairseq's --replace-unk, mended.

Upstream reads a bare --replace-unk as the name of a file, has no alignments unless they are printed, and looks words up
after BPE was undone.  Here `fairseq-generate DATA --dataset-impl raw --replace-unk [FILE]` works with every model that
has attention: an unknown target word becomes the source word with the greatest weight, or that word's entry in FILE
(lines of source and target word).  The data folder holds text (`fairseq-preprocess --dataset-impl raw`), for words
unknown to the source dictionary too can only be copied from there.  `fairseq-interactive` shows the model's own source,
in which they are lost.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Sequence

from fairseq import utils
from fairseq.data.data_utils import post_process
from fairseq.tasks.fairseq_task import FairseqTask

from seqstruct.bridge.decoding import TranslationGenerator
from seqstruct.bridge.patches.beam_search import BeamSearchGenerator
from seqstruct.bridge.patches.patch import patch

BARE = "@@ "  # what fairseq's parser makes of the option without a file


@patch(utils, "post_process_prediction")
def post_process_prediction(
    original: Callable, hypo_tokens: Any, src_str: str, alignment: Any, align_dict: dict[str, str] | None,
    tgt_dict: Any, remove_bpe: str | None = None, extra_symbols_to_ignore: Any = None,
) -> tuple[Any, str, Any]:
    """Words are looked up after BPE was undone."""
    if align_dict is None:
        return original(hypo_tokens, src_str, alignment, None, tgt_dict, remove_bpe, extra_symbols_to_ignore)
    ignored = {tgt_dict.eos(), tgt_dict.pad(), *(extra_symbols_to_ignore or ())}
    words = [tgt_dict[i] for i in map(int, hypo_tokens) if i not in ignored]
    words = replaced(words, src_str.split(), alignment, align_dict, tgt_dict.unk_word)
    text = post_process(" ".join(words), remove_bpe)
    return tgt_dict.encode_line(text, add_if_not_exist=True), text, alignment


@patch(FairseqTask, "build_generator")
def build_generator(
    build: Callable, self: FairseqTask, models: Any, args: Any, seq_gen_cls: Any = None,
    extra_gen_cls_kwargs: Any = None, *rest: Any, **named: Any,
) -> Any:
    """No alignments unless they are printed, and an IndexError where a model has no attention or a sentence has fewer
    hypotheses than the beam; search over the whole vocabulary; 0 best hypotheses are printed.
    """
    if getattr(args, "nbest", 1) < 1:
        raise ValueError(f"--nbest is 1 or more, not {args.nbest}")
    aligns, replaces = getattr(args, "print_alignment", None), getattr(args, "replace_unk", None) is not None
    if seq_gen_cls is None and not getattr(args, "score_reference", False):
        if replaces and str(aligns) == "soft":
            raise ValueError("--replace-unk goes with --print-alignment hard, not soft")
        anew = any(getattr(model, "full_context_alignment", False) for model in models)  # aligned in a pass of its own
        if replaces or (aligns and not anew):
            seq_gen_cls = TranslationGenerator
            extra_gen_cls_kwargs = {**(extra_gen_cls_kwargs or {}), "alignment": str(aligns or "hard")}
        elif not aligns:
            seq_gen_cls = BeamSearchGenerator
    return build(self, models, args, seq_gen_cls, extra_gen_cls_kwargs, *rest, **named)


@patch(utils, "load_align_dict")
def load_align_dict(_: Callable, replace_unk: str | None) -> dict[str, str] | None:
    """The bare option is read as the name of a file.

    Target words by source words from a file of such pairs; empty for the bare option, None without it.
    Raises ValueError, with file and line, if a line is no pair or the file is not UTF-8.
    """
    if replace_unk is None or replace_unk in ("", BARE):
        return None if replace_unk is None else {}
    found = {}
    number = 0
    try:
        with open(Path(replace_unk), encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                words = line.split()
                if len(words) != 2:
                    raise ValueError(f"{replace_unk}: line {number}: expected a source and a target word, got {line!r}")
                found[words[0]] = words[1]
    except UnicodeDecodeError as error:
        raise ValueError(f"{replace_unk}: not UTF-8 after line {number}: {error.reason}") from None
    return found


def replaced(
    words: Sequence[str], source: Sequence[str], alignment: Sequence[tuple[int, int]], dictionary: dict[str, str],
    unknown: str,
) -> list[str]:
    """The target words, unknown ones replaced.

    alignment: pairs of source and target positions from 0; a word without one stays, as it does where the source has no
    word but its end.
    """
    aligned = {target: source[i] for i, target in alignment if i < len(source)}
    return [
        dictionary.get(aligned[place], aligned[place]) if word == unknown and place in aligned else word
        for place, word in enumerate(words)
    ]
