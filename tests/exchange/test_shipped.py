"""The code that goes with a model: of each module what is used, in a flat folder that needs no package."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from seqstruct.attention import ATTENTIONS
from seqstruct.exchange.shipped import shipped

ROOTS = [("seqstruct.hf.seq2seq", "SeqstructForSeq2SeqLM"), ("seqstruct.hf.causal_lm", "SeqstructForCausalLM"),
         ("seqstruct.hf.classification", "SeqstructForSequenceClassification"),
         ("seqstruct.hf.tokenization", "SeqstructTokenizer")]
CONFIGURATION = "seqstruct.hf.configuration"
CODE = """
import sys
sys.modules["seqstruct"] = sys.modules["fairseq"] = None  # neither is to be found
from flat import seqstruct_hf_configuration as c, seqstruct_hf_causal_lm as lm, seqstruct_hf_seq2seq as mt
from flat import seqstruct_hf_classification as cl, seqstruct_hf_tokenization
from flat.seqstruct_attention_registry import ATTENTIONS
import torch
sizes = {f"{s}_{n}": v for s in ("encoder", "decoder") for n, v in
         dict(layers=1, embed_dim=8, ffn_embed_dim=8, attention_heads=2).items()}
x = torch.tensor([[4, 5, 6]])
for name, mechanism in ATTENTIONS.items():
    for site in mechanism.sites:
        arch, model = {"encoder_self": ("_classifier", cl.SeqstructForSequenceClassification),
                       "decoder_self": ("_lm", lm.SeqstructForCausalLM),
                       "cross": ("", mt.SeqstructForSeq2SeqLM)}[site.value]
        plan = {f"{site.value}_attention": name + OPTIONS.get(name, "")}
        config = c.SeqstructConfig(arch="structured_transformer" + arch, vocab_size=9, **sizes, **plan)
        given = {"decoder_input_ids": x} if arch == "" else {}
        assert model(config).eval()(x, **given).logits.isfinite().all(), (name, site)
print(len(ATTENTIONS))
"""


def registered(names: list[str]) -> list[tuple[str, str]]:
    return [(ATTENTIONS[name].__module__, ATTENTIONS[name].__qualname__) for name in names]


@pytest.mark.slow
def test_all_mechanisms_work_without_the_package(tmp_path: Path) -> None:
    from seqstruct.attention.plan import Choice
    from seqstruct.attention.registry import make_config
    from seqstruct.testing.cases import OPTIONS

    names = [name for name in ATTENTIONS if ATTENTIONS[name].__module__.startswith("seqstruct.")]
    folder = tmp_path / "flat"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, text in shipped(ROOTS, {CONFIGURATION: registered(names)}, "0").items():
        (folder / name).write_text(text, encoding="utf-8")
    plans = {
        name: str(Choice(name, make_config(name, OPTIONS[name][0])))[len(name) :] for name in names if name in OPTIONS
    }
    done = subprocess.run(
        [sys.executable, "-c", f"OPTIONS = {plans!r}\n{CODE}"], cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},
    )
    assert done.stdout.strip() == str(len(names)), done.stderr


def test_what_is_not_used_stays_behind() -> None:
    files = shipped(ROOTS[:1], {CONFIGURATION: registered(["softmax"])}, "1.2")
    assert "seqstruct_ops_masking.py" in files and "seqstruct_attention_softmax_softmax.py" in files
    assert not any(part in name for name in files for part in ("kernel", "linear_attention", "tokenization", "lsh"))
    assert "def started" not in files["seqstruct_ops_masking.py"]
    for name, text in files.items():
        assert text.startswith("# Of seqstruct 1.2, "), name
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.level == 1 and f"{node.module}.py" in files, name
            assert not isinstance(node, (ast.Import, ast.ImportFrom)) or not ast.unparse(node).startswith(
                ("import seqstruct", "from seqstruct")), name


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="seqstruct.ops.masking defines no sieve"):
        shipped([("seqstruct.ops.masking", "sieve")], {}, "0")
