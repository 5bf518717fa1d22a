"""One small checkpoint of each registered model, as fairseq saves it, with an input and what the model makes of it.

    PYTHONPATH=CHECKOUT python tests/golden/checkpoints/make.py [NAME ...]

writes NAME.pt for every case, or for those named, `outputs.pt.gz` and `manifest.json` beside this file, by the package
in CHECKOUT.  Those kept here are of the commits that the manifest names, of all and of those that were added: newer
code has to give the same numbers.  Outputs are in float64 and without compiled kernels; those of cases under `renewed`
are of that commit and machine, since which the model computes something else or takes sums in another order.
"""

from __future__ import annotations

import gzip
import io
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.configs import GenerationConfig
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import BaseFairseqModel
from omegaconf import OmegaConf
from torch import Tensor
from torch.utils._pytree import tree_leaves

import seqstruct
import seqstruct.models  # noqa: F401  registers models
import seqstruct.tasks  # noqa: F401  registers tasks and criterions

FOLDER = Path(__file__).resolve().parent
OUTPUTS, MANIFEST = FOLDER / "outputs.pt.gz", FOLDER / "manifest.json"
DECODING = GenerationConfig(beam=2, max_len_a=0.0, max_len_b=4)


class Kind(NamedTuple):
    """What models of one kind are built for.  folder: of `data`.  sequences: whether they decode."""

    folder: str
    options: str
    sequences: bool = False


class Case(NamedTuple):
    """options: of fairseq-train, beside those of the kind."""

    kind: str
    options: str


KINDS = {
    "language": Kind("text", "--task language_modeling --tokens-per-sample 32", True),
    "translation": Kind("text", "--task translation -s de -t en", True),
    "masked": Kind("text", "--task masked_lm --tokens-per-sample 16"),
    "classes": Kind("classes", "--task text_classification --criterion classification_cross_entropy"),
    "pairs": Kind("pairs", "--task text_classification --criterion classification_cross_entropy"),
    "nli": Kind("nli", "--task nli --criterion classification_cross_entropy"),
    "babi": Kind("babi", "--task babi_qa --criterion babi_qa --seeds 2"),
    "parsing": Kind("parsing", "--task joint_parsing --criterion joint_parsing --word-dropout 0"),
    "formulas": Kind("formulas", "--task tree_transduction", True),
    "recognition": Kind("recognition", "--task recognition --criterion recognition_cross_entropy --next-symbols"),
}
STACK = "nondeterministic_stack(states=2, symbols=2, size=3)"
LM = "--arch structured_transformer_lm --decoder-embed-dim 8 --decoder-ffn-embed-dim 6 --decoder-attention-heads 2 "
SIDES = "".join(
    f"--{side}-embed-dim 8 --{side}-ffn-embed-dim 6 --{side}-attention-heads 2 " for side in ("encoder", "decoder")
)
MT = f"--arch structured_transformer {SIDES} "
RNN = "--embed-dim 4 --hidden-size 6 --maxout-size 4 "
PARSER = ("--arch joint_parser --word-dim 4 --lemma-dim 2 --tag-dim 2 --lstm-size 3 --lstm-layers 1 --mlp-size 4 "
          "--role-dim 3 --classifier-lstm-size 3 --classifier-mlp-size 4 ")
CLASSIFIER = ("--encoder-embed-dim 8 --encoder-ffn-embed-dim 6 --encoder-attention-heads 2 --encoder-layers 2 "
              "--max-source-positions 16 ")


def _plan(*layers: str) -> str:
    return f"--decoder-layers {len(layers)} --decoder-self-attention '{' + '.join(layers)}'"


def _plans(encoder: str, decoder: str, cross: str) -> str:
    return (f"--encoder-layers {encoder.count(' + ') + 1} --decoder-layers {decoder.count(' + ') + 1} "
            f"--encoder-self-attention '{encoder}' --decoder-self-attention '{decoder}' "
            f"--cross-attention '{cross}'")


CASES = {
    "lm_softmax": Case("language", LM + _plan("softmax", "gated_softmax", "normalized_softmax")),
    "lm_stacks": Case("language", LM + _plan(
        "superposition_stack(size=3)", STACK)),
    "lm_kernels": Case("language", LM + _plan(
        "rfa(features=4, pool=2)", "rfa(features=4, pool=2, kernel=\"arccos\", gate=True)", "performer(features=4)",
        "t2r(features=4)")),
    "lm_memories": Case("language", LM + _plan(
        "abc_mlp(slots=3)", "abc_random(slots=3, period=32)", "linformer(slots=3, length=32)", "mean_pool(stride=3)",
        "clustering(slots=3)", "local_to_global")),
    "lm_windows": Case("language", LM + _plan(
        "sliding_window(slots=3)", "dilated_window(slots=3, dilation=2)", "lsh(rounds=2, buckets=4, chunk=4)")),
    "lm_cfl": Case("language", "--arch structured_transformer_lm_cfl --decoder-embed-dim 8 --decoder-attention-heads 2 "
                   "--decoder-ffn-embed-dim 6 " + _plan("softmax", STACK)),
    "recurrent_lm": Case("language", "--arch recurrent_lm --hidden-size 6 --cell F"),
    "recurrent_lm_lstm": Case("language", "--arch recurrent_lm --hidden-size 6 --cell LSTM"),
    "awd_lstm": Case("language", "--arch awd_lstm --decoder-embed-dim 4 --hidden-size 6"),
    "on_lstm": Case("language", "--arch on_lstm --decoder-embed-dim 4 --hidden-size 6 --chunk-size 2"),
    "palm": Case("language", "--arch palm --decoder-embed-dim 4 --hidden-size 6 --span-size 3 --max-span 4"),
    "prpn": Case("language", "--arch prpn --decoder-embed-dim 4 --hidden-size 6 --memory-slots 4 --lookback 2"),
    "stack_lstm_lm": Case("language", "--arch stack_lstm_lm --hidden-size 5"),
    "stack_lstm_lm_nd": Case("language", f"--arch stack_lstm_lm_nd --hidden-size 5 --stack '{STACK}'"),
    "mt_rfa": Case("translation", MT + _plans(
        "rfa(features=4, pool=2)", "rfa(features=4, pool=2)", "rfa(features=4, pool=2)")),
    "mt_stacks": Case("translation", MT + _plans(
        f"superposition_stack(size=3) + {STACK}", STACK, "segmentation")),
    "mt_trees": Case("translation", MT + _plans(
        "dependency(hidden_size=4, score_size=4) + soft_children(hidden_size=4) + simple(hidden_size=4)",
        "softmax", "luong")),
    "mt_local": Case("translation", MT + _plans(
        "local_blocks(size=2) + bigbird(size=2, random=1) + sinkhorn(size=2)", "softmax",
        "location(length=8)")),
    "mt_luna": Case("translation", MT + _plans(
        "luna(slots=3) + luna(slots=3)", "softmax", "linear")),
    "mt_shared": Case("translation", MT + "--share-all-embeddings --interleaved-positions " + _plans(
        "abc_mlp(slots=3)", "softmax", "abc_mlp(slots=3)")),
    "rnnsearch": Case("translation", "--arch rnnsearch --cross-attention 'additive(size=4)' " + RNN),
    "rnn_luong_local_p": Case("translation", "--arch rnn_luong_local_p " + RNN),
    "rnn_gnmt": Case("translation", "--arch rnn_translation --attention-query previous --encoder-layers 3 "
                     "--decoder-layers 3 --residual-from 3 --encoder-directions first --initial-state zero "
                     "--output plain --logit-clip 3 --cross-attention 'sigmoid(bias=-1.0)' " + RNN),
    "rnn_gated_convolution": Case("translation", "--arch rnn_gated_convolution " + RNN),
    "roberta": Case("masked", "--arch structured_roberta --encoder-embed-dim 8 --encoder-ffn-embed-dim 6 "
                    "--encoder-attention-heads 2 --encoder-layers 2 "
                    "--encoder-self-attention 'softmax + abc_mlp(slots=3)'"),
    "classifier": Case("classes", "--arch structured_transformer_classifier --encoder-self-attention "
                       "'softmax + performer(features=4)' " + CLASSIFIER),
    "classifier_pairs": Case("pairs", "--arch structured_transformer_classifier --encoder-self-attention "
                             "'linformer(slots=3, length=16) + synthesizer(length=16)' " + CLASSIFIER),
    "rnn_classifier": Case("classes", "--arch rnn_classifier --hidden-size 5 --embed-dim 4 --cell F"),
    "decomposable_attention": Case("nli", "--arch decomposable_attention --word-dim 4 --hidden-size 5 "
                                   "--intra-attention 'dependency(hidden_size=3)'"),
    "memn2n": Case("babi", "--arch memn2n --embed-dim 4"),
    "memory_binary_crf": Case("babi", "--arch memory_binary_crf --embed-dim 4"),
    "joint_parser": Case("parsing", PARSER + "--corpora trees,dm,psd --intermediate tree --shared-encoder"),
    "joint_parser_graph": Case("parsing", PARSER + "--corpora dm,sst --intermediate graph"),
    "tree_transduction": Case("formulas", "--arch tree_transduction --hidden-size 5 "
                              "--encoder-self-attention 'dependency(hidden_size=3, score_size=4, root_token=True)'"),
    "lm_modern": Case("language", LM.replace("_lm ", "_lm_modern ") + "--decoder-kv-heads 1 --rotary hybrid "
                      "--short-conv 3 --logit-soft-cap 5 "
                      + _plan("softmax", "delta", "sliding_window(slots=3)", "sigmoid")),
    "mt_modern": Case("translation", MT.replace("transformer ", "transformer_modern ") + "--encoder-kv-heads 1 "
                      "--decoder-kv-heads 2 " + _plans(
        "softmax + dilated_window(slots=3)", "softmax + softmax", "softmax + gsa")),
    "transformer_recognizer": Case("recognition", LM.replace(
        "structured_transformer_lm", "transformer_recognizer_flare") + _plan("softmax", "delta")),
    "recurrent_recognizer": Case("recognition", "--arch recurrent_recognizer_rnn_flare --hidden-size 6"),
    "stack_lstm_recognizer": Case("recognition", f"--arch stack_lstm_recognizer_nd --hidden-size 5 --stack '{STACK}'"),
}


def made_on() -> dict[str, str]:
    """What the last bit of a number depends on: the processor, and torch with its choice of instructions."""
    names = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {
        "processor": names[0] if names else "unknown", "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": str(torch.__version__),
    }


def load(name: str) -> tuple[BaseFairseqModel, Any]:
    """The model of a checkpoint and its task, through fairseq, on the data beside this file."""
    data = str(FOLDER / "data" / KINDS[CASES[name].kind].folder)
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(FOLDER / f"{name}.pt")], {"data": data})
    return models[0].double().eval(), task


def read_outputs() -> dict[str, dict[str, Any]]:
    """`input` and `output` of each case."""
    return torch.load(io.BytesIO(gzip.decompress(OUTPUTS.read_bytes())), weights_only=True)


def compute(model: BaseFairseqModel, task: Any, kind: str, given: dict[str, Any]) -> dict[str, Tensor]:
    """`forward`: all that the model says, in order; `search`: tokens and scores of beam search, best first.

    Each is one row of float64, in which parts stand one after the other.
    """
    with torch.no_grad():
        found = model(**given)
        main = found[0] if type(found) is tuple else found  # beside it stand extras, or nothing
        computed = {"forward": [leaf for leaf in tree_leaves(main) if isinstance(leaf, Tensor)]}
        if KINDS[kind].sequences:
            source = {name: value for name, value in given.items() if name != "prev_output_tokens"}
            if kind == "language":
                source = {"src_tokens": given["src_tokens"][:, :3], "src_lengths": torch.full((2,), 3)}
            generator = task.build_generator([model], DECODING)
            hypotheses = task.inference_step(generator, [model], {"net_input": source})
            best_first = [h for row in hypotheses for h in row]
            computed["search"] = [h[part] for h in best_first for part in ("tokens", "positional_scores")]
    return {name: torch.cat([part.double().flatten() for part in parts]) for name, parts in computed.items()}


def example(task: Any, kind: str, generator: torch.Generator) -> dict[str, Any]:
    """Arguments of a model's forward: a batch with padding."""

    def draw(*shape: int, low: int = 4, high: int = 12) -> Tensor:
        return torch.randint(low, high, shape, generator=generator)

    lengths = torch.tensor([7, 5])
    tokens = draw(2, 7)
    tokens[1, 5:] = 1
    if kind == "language":
        tokens[:, 0] = 2
        return {"src_tokens": tokens, "src_lengths": lengths}
    if kind in ("translation", "formulas"):
        tokens[0, -1], tokens[1, 4] = 2, 2
        previous = draw(2, 6, high=8)
        previous[:, 0] = 2
        if kind == "translation":  # padded on the left
            tokens[1] = tokens[1].roll(2)
        return {"src_tokens": tokens, "src_lengths": lengths, "prev_output_tokens": previous}
    if kind == "masked":
        return {"src_tokens": tokens}
    if kind == "classes":
        return {"src_tokens": tokens, "src_lengths": lengths}
    if kind == "pairs":
        second = draw(2, 3)
        return {"src_tokens": tokens, "src_lengths": lengths, "second_tokens": second,
                "second_lengths": torch.tensor([3, 3])}
    if kind == "nli":
        premise, hypothesis = draw(2, 5, low=1, high=9), draw(2, 4, low=1, high=9)
        premise[1, 3:] = 0
        return {"premise": premise, "hypothesis": hypothesis}
    if kind == "babi":
        sentences = draw(5, 4, low=0, high=8)
        sentences[1, 2:] = -1
        facts = draw(2, 3, 3, low=0, high=5)
        facts[0, 1, 2:] = -1
        return {"sentences": sentences, "facts": facts, "question": draw(2, 3, low=0, high=5), "epoch": 30}
    task.load_dataset("train")
    data = task.dataset("train")
    return data.collater([data[i] for i in range(len(data))])["net_input"]


def make(name: str, number: int) -> dict[str, Any]:
    """Write NAME.pt, of parameters drawn from a wide distribution; the input and outputs come back."""
    kind, given = CASES[name]
    folder, common, _ = KINDS[kind]
    parser = options.get_training_parser()
    command = [f"data/{folder}", *shlex.split(f"{common} --optimizer adam --cpu {given}")]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, command))
    cfg.task.data = str(FOLDER / cfg.task.data)
    torch.manual_seed(number)
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    generator = torch.Generator().manual_seed(number)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    cfg.task.data = f"data/{folder}"
    if "data" in cfg.model:
        cfg.model.data = cfg.task.data
    state = {
        "args": None, "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True), "model": model.state_dict(),
        "criterion": None, "last_optimizer_state": None, "task_state": {},
        "extra_state": {"seqstruct_versions": {"seqstruct": seqstruct.__version__, "torch": str(torch.__version__)}},
        "optimizer_history": [{"criterion_name": "CrossEntropyCriterion", "optimizer_name": "FairseqAdam",
                               "lr_scheduler_state": {"best": None}, "num_updates": 0}],
    }
    torch.save(state, FOLDER / f"{name}.pt")
    batch = example(task, kind, generator)
    model, task = load(name)
    return {"input": batch, "output": compute(model, task, kind, batch)}


def main(names: Sequence[str]) -> None:
    """The named cases, beside those that are there; all without a name."""
    torch.set_num_threads(1)
    package = Path(seqstruct.__file__).parent
    found = subprocess.run(["git", "-C", package, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    commit, numbers, written = found.stdout.strip(), {name: number for number, name in enumerate(CASES)}, io.BytesIO()
    before = read_outputs() if names else {}
    outputs = {**before, **{name: make(name, numbers[name]) for name in names or CASES}}
    torch.save(outputs, written)
    OUTPUTS.write_bytes(gzip.compress(written.getvalue(), mtime=0))
    manifest = json.loads(MANIFEST.read_text()) if names else {"commit": commit, **made_on()}
    for name in names:
        new = commit if name not in before else {"commit": commit, **made_on()}
        manifest.setdefault("added" if name not in before else "renewed", {})[name] = new
    MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
