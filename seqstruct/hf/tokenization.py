"""The tokenizer of a run: its text is cut as the run's preparation cut it, and numbered by the run's dictionaries."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizer

from seqstruct.data.text.pipeline import TextPipeline

SIDES = ("source", "target")


class SeqstructTokenizer(PreTrainedTokenizer):
    """Texts to ids and back, for two sides, which may be one.

    `tokenizer(texts)` numbers the source, `tokenizer(text_target=texts)` the target, and `decode` takes ids of the
    target; a special symbol in a text is text like any other.  SIDE_vocab: files of symbols, one a line, by their ids;
    without that of the target, it is the source's.  SIDE_pipeline: fields of `TextPipeline`, without its files, which
    are SIDE_model and SIDE_truecaser.  begin, end: whether ids begin with bos_token and end with eos_token.
    Encoding raises what `TextPipeline.encode` does.
    """

    vocab_files_names = {
        "source_vocab": "vocab.source.txt", "target_vocab": "vocab.target.txt", "source_model": "subwords.source",
        "target_model": "subwords.target", "source_truecaser": "truecase.source", "target_truecaser": "truecase.target",
    }
    model_input_names = ["input_ids", "attention_mask"]

    def __init__(
        self,
        source_vocab: str,
        target_vocab: str | None = None,
        source_model: str | None = None,
        target_model: str | None = None,
        source_truecaser: str | None = None,
        target_truecaser: str | None = None,
        source_pipeline: Mapping[str, Any] | None = None,
        target_pipeline: Mapping[str, Any] | None = None,
        begin: bool = False,
        end: bool = True,
        **options: Any,
    ):
        source = source_pipeline or {}, source_model, source_truecaser
        target = source if target_pipeline is None else (target_pipeline, target_model, target_truecaser)
        self.pipelines = {
            side: TextPipeline(**fields, model=model and Path(model), truecaser=truecaser and Path(truecaser))
            for side, (fields, model, truecaser) in zip(SIDES, (source, target), strict=True)
        }
        self.symbols = {"source": _lines(source_vocab), "target": _lines(target_vocab or source_vocab)}
        self.ids = {side: {symbol: number for number, symbol in enumerate(self.symbols[side])} for side in SIDES}
        self.files = {
            name: path
            for name, path in dict(
                source_vocab=source_vocab, target_vocab=target_vocab, source_model=source_model,
                target_model=target_model, source_truecaser=source_truecaser, target_truecaser=target_truecaser,
            ).items() if path
        }
        self.side = "source"
        options = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", **options}
        super().__init__(
            source_pipeline=source_pipeline, target_pipeline=target_pipeline, begin=begin, end=end, **options
        )
        self.special_tokens_pattern = "_".join(["bos"] * begin + ["eos"] * end) or "none"

    @property
    def vocab_size(self) -> int:
        """The number of symbols of the side at hand."""
        return len(self.symbols[self.side])

    def get_vocab(self) -> dict[str, int]:
        """Ids by symbol of the side at hand."""
        return dict(self.ids[self.side])

    def tokenize(self, text: str, **_: Any) -> list[str]:
        return self.pipelines[self.side].encode(text)

    def build_inputs_with_special_tokens(self, token_ids_0: list[int], token_ids_1: list[int] | None = None) -> list:
        """Ids with what begins and ends a text.  Raises ValueError on a second text."""
        if token_ids_1 is not None:
            raise ValueError("a pair of texts is two inputs: second_input_ids are those of the second one")
        return super().build_inputs_with_special_tokens(token_ids_0)

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        return self.pipelines["target"].decode(list(tokens))

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        saved = []
        for name, path in self.files.items():
            prefix = f"{filename_prefix}-" if filename_prefix else ""
            copy = Path(save_directory, prefix + self.vocab_files_names[name])
            if copy.resolve() != Path(path).resolve():
                shutil.copyfile(path, copy)
            saved.append(str(copy))
        return tuple(saved)

    def _convert_token_to_id(self, token: str) -> int:
        ids = self.ids[self.side]
        return ids.get(token, ids[self.unk_token])

    def _convert_id_to_token(self, index: int) -> str:
        symbols = self.symbols["target"]
        return symbols[index] if 0 <= index < len(symbols) else self.unk_token

    def _decode(self, token_ids: int | list[int], skip_special_tokens: bool = False, *_: Any, **__: Any) -> str:
        """What is unknown is shown, as fairseq does."""
        left_out = {self.bos_token_id, self.pad_token_id, self.eos_token_id} if skip_special_tokens else set()
        ids = [token_ids] if isinstance(token_ids, int) else token_ids
        return self.convert_tokens_to_string([self._convert_id_to_token(int(i)) for i in ids if int(i) not in left_out])

    def _add_tokens(self, new_tokens: Sequence[Any], special_tokens: bool = False) -> int:
        """Marks symbols that are there.  Raises ValueError on others: pieces of a text are cut and joined as the run's,
        which has no such symbol."""
        for token in map(str, new_tokens or ()):
            if token and token not in self.ids[self.side]:
                raise ValueError(f"{token!r} is no symbol of the {self.side}: a run has those of the dictionaries that "
                                 "it was trained with, and none is added to them")
        return super()._add_tokens(new_tokens, special_tokens=special_tokens)

    def _switch_to_input_mode(self) -> None:
        self.side = "source"

    def _switch_to_target_mode(self) -> None:
        self.side = "target"


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8", newline="\n") as stream:
        return [line.rstrip("\n") for line in stream]
