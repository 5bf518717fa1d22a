"""Mistakes that people make every day with fairseq's commands: one sentence each, and nothing left behind."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from seqstruct.bridge import failures
from seqstruct.cli import main
from tests.models.front_door import binarize, fairseq, sizes

# the models that mistakes are made with are trained by whichever test comes first
pytestmark = pytest.mark.training

TINY = " ".join(map(str, sizes(heads=2)))
ONCE = "--optimizer adam --batch-size 20 --max-update 1 --save-dir runs/new"
TRAIN = f"train pairs --arch structured_transformer {TINY} {ONCE}"
LM = (
    "train text --task language_modeling --arch structured_transformer_lm --decoder-embed-dim 8 --decoder-layers 1 "
    f"--decoder-attention-heads 2 --tokens-per-sample 16 {ONCE}"
)
GENERATE = "generate pairs --batch-size 20 --beam 1 --path mt.pt"
INTERACTIVE = "interactive pairs --path mt.pt --input short"
EVALUATE = "eval-lm text --batch-size 20 --path lm.pt --tokens-per-sample 16"
VALIDATE = "validate pairs --task translation --batch-size 20 --path mt.pt"
HYDRA = (
    "hydra-train hydra.run.dir=out hydra.job.chdir=false task=translation task.data=pairs optimizer=adam "
    "+model={_name:structured_transformer,encoder_layers:1} lr_scheduler=fixed dataset.batch_size=20 "
    "optimization.max_update=1 checkpoint.save_dir=runs/new"
)
INTERVALS = (
    "--log-interval", "--validate-interval", "--save-interval", "--keep-interval-updates-pattern", "--update-freq"
)
PAIR = "pairs names no pair of languages".replace("pairs", "{}")
FOREIGN = "{}: expected a fairseq checkpoint with a 'model' entry"
OTHER_OPTIMIZER = "mt.pt was trained with other parameters, so its optimizer does not fit"
DAMAGED = "{}: not a whole fairseq checkpoint"

# a command, what is changed in it, and a part of the sentence
MISTAKES: list[tuple[str, dict[str, str], str]] = [
    (TRAIN, {"--batch-size 20": ""}, "give the size of batches: --batch-size SENTENCES or --max-tokens TOKENS"),
    (TRAIN, {"--arch structured_transformer": ""}, "give --arch, the model"),
    (TRAIN, {"--batch-size 20": "--batch-size 0"}, "--batch-size is 1 or more, not 0"),
    (TRAIN, {"--batch-size 20": "--max-tokens -5"}, "--max-tokens is 1 or more, not -5"),
    (TRAIN, {"--batch-size 20": "--max-tokens 2"}, "Sentences lengths should not exceed max_tokens=2"),
    *((TRAIN, {"pairs": f"pairs {flag} 0"}, f"{flag} is 1 or more, not 0") for flag in INTERVALS),
    (LM, {"text": "text --adaptive-softmax-cutoff 5,9"},
     "--adaptive-softmax-cutoff trains with --criterion adaptive_loss, not with cross_entropy"),
    (TRAIN, {"pairs": "absent"}, "absent: No such file or directory"),
    (TRAIN, {"pairs": "short"}, "short: Not a directory"),
    (TRAIN, {"pairs": "empty"}, PAIR.format("empty")),
    (TRAIN, {"pairs": "text"}, PAIR.format("text")),
    (TRAIN, {"pairs": "pairs -s de -t fr"}, "pairs has no dict.fr.txt, which the task translation reads: dict.de.txt"),
    (TRAIN, {"pairs": "pairs --valid-subset dev"}, "pairs has no 'dev' for these languages and this task; it has test"),
    (TRAIN, {"pairs": "mixed"}, "mixed: a token has the index 16, the table of the model 16 rows: data and"),
    (TRAIN, {"pairs": "cut"}, "cut/train.de-en.de: not a whole file of fairseq-preprocess"),
    (TRAIN, {"pairs": "index"}, "index/train.de-en.de: not a whole file of fairseq-preprocess"),
    (TRAIN, {"pairs": "names"}, "names/dict.de.txt: truncated or altered: Incorrect dictionary format"),
    *([] if torch.cuda.is_available() else [(TRAIN, {"pairs": "pairs --fp16"}, "--fp16 needs a GPU unless --fp16-n")]),
    (TRAIN, {"embed-dim 8": "embed-dim -8"}, "--encoder-embed-dim is 1 or more, not -8"),
    (TRAIN, {"ffn-embed-dim 8": "ffn-embed-dim 0"}, "--encoder-ffn-embed-dim is 1 or more, not 0"),
    (TRAIN, {"--decoder-layers 1": "--decoder-layers -1"}, "--decoder-layers is 0 or more, not -1"),
    (TRAIN, {"heads 2": "heads 0"}, "--encoder-attention-heads is 1 or more, not 0"),
    (TRAIN, {"heads 2": "heads 3"}, "embed_dim 8 is not a multiple of 3 heads"),
    (TRAIN, {"pairs": "pairs --dropout 1.0"}, "--dropout is a probability, 0 or more and below 1, not 1.0"),
    (TRAIN, {"decoder-embed-dim 8": "decoder-embed-dim 4 --share-all-embeddings"}, "--share-all-embeddings requires"),
    (TRAIN, {"pairs": "pairs --share-decoder-input-output-embed --decoder-output-dim 4"},
     "--share-decoder-input-output-embed needs one size: --decoder-input-dim is 8, --decoder-output-dim 4"),
    (TRAIN, {"pairs": "pairs --encoder-self-attention rfa(features=0)"}, "rfa: features is 1 or more, not 0"),
    (TRAIN, {"pairs": "pairs --decoder-self-attention softmax+rafa"},
     "decoder_self attention, layer 1: no attention is called 'rafa'; there are: "),
    (TRAIN, {"pairs": "pairs --max-source-positions 3"}, "(3, 1024): --skip-invalid-size-inputs-valid-test leaves"),
    (TRAIN, {"--batch-size 20": "--max-tokens 1"}, "longer than the (1, 1) tokens that model, task and --max-"),
    (TRAIN, {"pairs": "pairs --max-target-positions 1 --skip-invalid-size-inputs-valid-test"}, "all 60 samples are"),
    (TRAIN, {"runs/new": "short"}, "short: Not a directory"),
    (TRAIN, {"runs/new": "short/new"}, "short/new: Not a directory"),
    (TRAIN, {"runs/new": "/proc/absent/new"}, "/proc/absent/new: No such file or directory"),
    (TRAIN, {"pairs": "pairs --restore-file absent.pt"}, "--restore-file absent.pt: no such checkpoint"),
    (TRAIN, {"pairs": "pairs --restore-file runs/checkpoint_last.pt"}, "runs/checkpoint_last.pt: no such checkpoint"),
    (TRAIN, {"pairs": "pairs --finetune-from-model absent.pt"}, "--finetune-from-model absent.pt does not exist"),
    (TRAIN, {"pairs": "pairs --restore-file cut.pt"}, DAMAGED.format("cut.pt")),
    (TRAIN, {"pairs": "pairs --restore-file foreign.pt"}, FOREIGN.format("foreign.pt")),
    (TRAIN, {"pairs": "pairs --restore-file lm.pt"}, "lm.pt: the checkpoint is of another architecture: it lacks "),
    (TRAIN, {"pairs": "pairs --restore-file mt.pt --encoder-self-attention abc_mlp(slots=3)"},
     f"{OTHER_OPTIMIZER}: give --reset-optimizer, or --finetune-from-model mt.pt and another --save-dir"),
    (TRAIN, {"pairs": "pairs --share-all-embeddings --restore-file mt.pt --encoder-kv-heads 1", "update 1": "update 2"},
     f"{OTHER_OPTIMIZER}: give"),
    (TRAIN, {"pairs": "pairs --share-all-embeddings --restore-file mt.pt --lr-scheduler inverse_sqrt"},
     "mt.pt was trained with another schedule than --lr-scheduler inverse_sqrt: give that one, or --reset-lr-sched"),
    (TRAIN, {"structured_transformer": "transformer", "pairs": "pairs --restore-file mt.pt"},
     "mt.pt: the checkpoint is of another architecture: it lacks "),
    (TRAIN, {"structured_transformer": "joint_parser", TINY: ""},
     "the model joint_parser needs --task joint_parsing, not translation"),
    (TRAIN, {"structured_transformer": "memory_network", TINY: ""}, "the model memory_network needs --task babi_qa"),
    (TRAIN, {"structured_transformer": "rnn_classifier", TINY: ""}, "the model rnn_classifier needs --task text_"),
    (TRAIN, {"structured_transformer": "structured_transformer_lm", TINY: ""},
     "--arch structured_transformer_lm needs a task with tokens_per_sample, such as language_modeling"),
    (TRAIN, {"pairs": "pairs --criterion joint_parsing"}, "the criterion joint_parsing needs --task joint_parsing"),
    (TRAIN, {"pairs": "pairs --criterion sentence_prediction"}, "--criterion sentence_prediction do not go together: "),
    (TRAIN, {"pairs": "pairs --best-checkpoint-metric bleu"}, "--best-checkpoint-metric bleu: validation has bsz,"),
    (TRAIN, {"pairs": "pairs --combine-valid-subsets --valid-subset valid,test"},
     "--combine-valid-subsets makes one of valid, valid1 and so on, which goes with --valid-subset valid, not valid,"),
    (TRAIN, {"pairs": "pairs --optimizer-overrides 0.5"}, "--optimizer-overrides takes a Python dictionary, such as"),
    (TRAIN, {"pairs": "pairs --lr-scheduler tri_stage --phase-ratio (0.1,0.4,0.5)", "update 1": "epoch 1"},
     "--phase-ratio needs --max-update, of which it gives the parts"),
    (TRAIN, {"pairs": "pairs --lr-scheduler polynomial_decay"}, "give --total-num-update"),
    (TRAIN, {"--optimizer adam": "--optimizer composite"},
     "--optimizer composite needs the optimizer of each group, in a file of fairseq-hydra-train: Key 'default' is not"),
    (TRAIN, {"pairs": "pairs --eval-bleu --eval-bleu-args beam=4"}, "an option takes JSON, such as '{\"beam\": 4}'"),
    (TRAIN, {"pairs": "pairs --log-file absent/log"}, "absent/log: No such file or directory"),
    (TRAIN, {"pairs": "pairs --distributed-world-size 2 --distributed-port 9"}, "none was started, there being"),
    (LM, {"text": "pairs"}, "pairs has no dict.txt, which the task language_modeling reads"),
    (LM, {"structured_transformer_lm": "structured_transformer"}, "structured_transformer is none"),
    (LM, {"--tokens-per-sample 16": "--tokens-per-sample 0"}, "--tokens-per-sample, less --context-window, is 1 or"),
    (LM.replace("language_modeling", "masked_lm"), {"structured_transformer_lm": "structured_transformer"},
     "forward() got an unexpected keyword argument 'src_id'; batches have src_tokens, src_lengths, src_id"),
    *((GENERATE, {"mt.pt": name}, DAMAGED.format(name)) for name in ("cut.pt", "hole.pt", "nothing.pt", "short")),
    *((GENERATE, {"mt.pt": name}, FOREIGN.format(name)) for name in ("foreign.pt", "tensor.pt")),
    (GENERATE, {"mt.pt": "list.pt"}, "list.pt: not a fairseq checkpoint: its entry 'model' is list"),
    (GENERATE, {"mt.pt": "parts.pt"}, "parts.pt: not a fairseq checkpoint ("),
    (GENERATE, {"mt.pt": "fewer.pt"}, "fewer.pt: the checkpoint is of another architecture: it lacks "),
    (GENERATE, {"mt.pt": "unknown.pt"}, "no model is called telepathy; if it comes from another plugin"),
    (GENERATE, {"mt.pt": "absent.pt"}, "Model file not found: absent.pt"),
    (GENERATE, {"mt.pt": "empty"}, "empty: "),
    (GENERATE, {"pairs": "larger"}, "mt.pt was trained with another source dictionary"),
    (GENERATE, {"pairs": "mixed"}, "a token has the index 16, the table of the model 16 rows"),
    (GENERATE, {"pairs": "text"}, PAIR.format("text")),
    (GENERATE, {"pairs": "pairs --gen-subset dev"}, "pairs has no 'dev'"),
    (GENERATE, {"pairs": "pairs --max-source-positions 3"}, "model and task take (3, 1024)"),
    (GENERATE, {"--beam 1": "--beam 0"}, "--beam: expected 1 or more, got 0"),
    (GENERATE, {"--beam 1": "--lenpen nan"}, "--lenpen: expected a finite number, got nan"),
    (GENERATE, {"--beam 1": "--unkpen nan"}, "--unkpen: expected a number, got nan"),
    (GENERATE, {"--beam 1": "--temperature inf"}, "--temperature: expected a finite number above 0, got inf"),
    (GENERATE, {"--beam 1": "--max-len-a nan"}, "--max-len-a: expected a finite number, 0 or more, got nan"),
    (GENERATE, {"--beam 1": "--diverse-beam-groups 5 --diverse-beam-strength nan"},
     "--diverse-beam-strength: expected a finite number, got nan"),
    (GENERATE, {"--beam 1": "--beam 9 --diversity-rate 0.5"},
     "--diversity-rate takes the 2 * 9 best symbols of each hypothesis (--beam), of 16 that there are"),
    (GENERATE, {"--beam 1": "--beam 1 --nbest 0"}, "--nbest is 1 or more, not 0"),
    (GENERATE, {"pairs": "pairs --model-overrides 0.5"}, "--model-overrides takes a Python dictionary, such as"),
    (GENERATE, {"pairs": "pairs --model-overrides [1]"}, "--model-overrides takes a Python dictionary, such as"),
    (VALIDATE, {"pairs": "pairs --model-overrides 0.5"}, "such as \"{'dropout': 0.0}\", not '0.5': "),
    (VALIDATE, {"pairs": "pairs --model-overrides [1]"}, "such as \"{'dropout': 0.0}\", not '[1]': "),
    (EVALUATE, {"text": "text --model-overrides 0.5"}, "--model-overrides takes a Python dictionary, such as"),
    (GENERATE, {"pairs": "pairs --task translation_gnmt --lenpen 0.6"},
     "--lenpen does nothing in --task translation_gnmt, whose scores --length-alpha normalizes"),
    (GENERATE, {"pairs": "pairs --task translation_gnmt --unnormalized"}, "--unnormalized does nothing in --task"),
    *([] if find_spec("iopath") else [(TRAIN, {"pairs": "pairs --write-checkpoints-asynchronously"},
                                       "--write-checkpoints-asynchronously needs the package iopath, which is not")]),
    (GENERATE, {"pairs": "pairs --model-overrides {bad"}, "such as \"{'dropout': 0.0}\", not '{bad'"),
    (GENERATE, {"pairs": "pairs --model-overrides {'dropout':none}"}, "0.0}\", not \"{'dropout': none}\""),
    (VALIDATE, {"pairs": "pairs --model-overrides {bad"}, "such as \"{'dropout': 0.0}\", not '{bad': "),
    (EVALUATE, {"text": "text --model-overrides {'dropout':none}"}, "\", not \"{'dropout':none}\": name 'none' is not"),
    (GENERATE, {"pairs": "pairs --results-path short"}, "short: File exists"),
    (GENERATE, {"--beam 1": "--print-step"}, "--print-step is of models that refine a translation in steps"),
    (GENERATE, {"--beam 1": "--retain-iter-history"}, "--retain-iter-history is of models that refine"),
    (GENERATE, {"--beam 1": "--constraints"}, "--constraints needs words for each sentence, which fairseq-interactive"),
    (GENERATE, {"--beam 1": "--score-reference --lenpen 0.6"}, "symbols; --lenpen does nothing beside it"),
    (GENERATE, {"--beam 1": "--score-reference --unnormalized"}, "symbols; --unnormalized does nothing beside it"),
    (INTERACTIVE, {"short": "short --lm-path lm.pt"}, "--lm-path: fairseq-generate alone reads a language"),
    (INTERACTIVE, {"short": "short --score-reference"}, "--score-reference needs references: fairseq-generate reads"),
    (INTERACTIVE, {"short": "short --prefix-size 1"}, "--prefix-size: fairseq-generate alone reads prefixes"),
    (INTERACTIVE, {"short": "short --print-alignment soft"}, "soft: fairseq-generate alone prints soft alignments"),
    (INTERACTIVE, {"mt.pt": "cut.pt"}, DAMAGED.format("cut.pt")),
    (INTERACTIVE, {"short": "absent"}, "absent: No such file or directory"),
    (INTERACTIVE, {"short": "long --max-source-positions 9"}, "sample 0 has (13, 0) tokens, model and task take (9,"),
    (EVALUATE, {"lm.pt": "foreign.pt"}, FOREIGN.format("foreign.pt")),
    (EVALUATE, {"lm.pt": "mt.pt"}, "the task needs a language model, such as structured_transformer_lm"),
    (EVALUATE, {"text": "pairs"}, "pairs has no dict.txt"),
    (EVALUATE, {"text": "text --gen-subset dev"}, "text has no 'dev'"),
    (EVALUATE, {"--tokens-per-sample 16": ""}, "all 1 samples are longer than the 16 tokens that model, task and"),
    (EVALUATE, {"text": "pairs --task translation", "lm.pt": "mt.pt", "--tokens-per-sample 16": ""},
     "fairseq-eval-lm evaluates language models, which --task translation does not have"),
    (VALIDATE, {"mt.pt": "hole.pt"}, DAMAGED.format("hole.pt")),
    (VALIDATE, {"--task translation": ""}, "give --task, such as --task translation"),
    (VALIDATE, {"--batch-size 20": ""}, "give the size of batches"),
    (VALIDATE, {"pairs": "pairs --valid-subset dev"}, "pairs has no 'dev'"),
    (HYDRA, {"dataset.batch_size=20": ""}, "give the size of batches"),
    (HYDRA, {"hydra-train": "hydra-train --config-dir empty --config-name absent"},
     "--config-name absent: no absent.yaml in "),
    (HYDRA, {"hydra-train": "hydra-train --config-name absent"},
     "--config-name absent needs the folder of absent.yaml, --config-dir"),
    (HYDRA, {"task=translation task.data=pairs": ""}, "give a task, such as task=translation"),
    (HYDRA, {"task.data=pairs": "task.data=mixed"}, "mixed: a token has the index 16"),
    (HYDRA, {"structured_transformer": "telepathy"}, "no model is called telepathy"),
    (HYDRA, {"optimizer=adam": "optimizer=adam optimizer._name=telepathy"},
     "no optimizer is called telepathy; there are: "),
    (HYDRA, {"dataset.batch_size": "dataset.batch"}, "seqstruct: Could not override 'dataset.batch'."),
    (HYDRA, {"encoder_layers": "encoder_layer"}, "Key 'encoder_layer' not in 'StructuredTransformerModelConfig'"),
]


DRAWING = ("plot attention --target am --out x.png", "plot run --target am --out x.png", "automaton --out x.png")
READING = (
    "inspect", "average --out x.pt", "parse short --checkpoint",
    "rescore --nbest short --source short --out x --checkpoint",
)
NO_CHECKPOINT = {
    **{name: DAMAGED.format(name) for name in ("cut.pt", "hole.pt", "nothing.pt", "short")},
    **{name: FOREIGN.format(name) for name in ("foreign.pt", "tensor.pt")},
    "list.pt": "list.pt: not a fairseq checkpoint: its entry 'model' is list",
}
NO_MODEL = {
    "parts.pt": "parts.pt: not a checkpoint of fairseq-train: it has no configuration",
    "unknown.pt": "unknown.pt: the model 'telepathy' is not known to fairseq",
    "fewer.pt": "fewer.pt: the checkpoint is of another architecture", "empty": "empty: ",
}
OWN: list[tuple[str, str]] = [
    *((f"{command} {name}", said) for command in READING for name, said in NO_CHECKPOINT.items()),
    *((f"{command} {name} ein", said) for command in DRAWING for name, said in (NO_CHECKPOINT | NO_MODEL).items()),
    ("plot run --out x.png lm.pt ein", "no layer has a nondeterministic stack"),
    ("plot attention --out x.png mt.pt ein", "a translation model needs a target too"),
    ("automaton --out x.png mt.pt ein", "mt.pt: the model has no rational recurrence"),
    ("automaton --out x.png lm.pt ein", "lm.pt: the model has no rational recurrence"),
    ("parse short --checkpoint lm.pt", "is no parser"),
]


@pytest.fixture(scope="module")
def place(reversals: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pairs, text, two trained models, and everything that can be wrong with them."""
    folder = tmp_path_factory.mktemp("mistakes")
    with contextlib.chdir(folder):
        make_data(reversals)
        fairseq(*TRAIN.split(), "--share-all-embeddings")
        shutil.move("runs/new/checkpoint_last.pt", "mt.pt")
        fairseq(*LM.split())
        shutil.move("runs/new/checkpoint_last.pt", "lm.pt")
        shutil.rmtree("runs")
        make_checkpoints()
    return folder


def make_data(reversals: Path) -> None:
    for name, folder in {"raw": "text", "pairs": "bin", "text": "lm"}.items():
        shutil.copytree(reversals / folder, name)
    for path in Path("raw").iterdir():
        path.write_text("".join(f"{line} neu fern alt hell rot klein grau\n" for line in path.read_text().splitlines()))
    binarize(Path("raw"), Path("larger"))
    Path("empty").mkdir()
    Path("short").write_text("ein haus am see\n")
    Path("long").write_text("haus " * 12 + "\n")
    for name in ("mixed", "cut", "index", "names"):
        shutil.copytree("larger" if name == "mixed" else "pairs", name)
    for language in ("de", "en"):
        shutil.copy(f"pairs/dict.{language}.txt", "mixed")
    Path("cut/train.de-en.de.bin").write_bytes(b"123")
    Path("index/train.de-en.de.idx").write_bytes(b"no index")
    Path("names/dict.de.txt").write_text("a word without a count\n")


def make_checkpoints() -> None:
    whole = Path("mt.pt").read_bytes()
    Path("cut.pt").write_bytes(whole[: len(whole) // 2])
    Path("hole.pt").write_bytes(whole[:200] + bytes(1000) + whole[1200:])
    Path("nothing.pt").write_bytes(b"")
    state = torch.load("mt.pt", weights_only=True)
    model, configuration = state["model"], state["cfg"]
    unknown = {**configuration, "model": {**configuration["model"], "_name": "telepathy"}}
    for name, content in {
        "foreign": {"weight": torch.zeros(3)}, "tensor": torch.zeros(3), "list": {**state, "model": [1, 2]},
        "parts": {"model": model}, "fewer": {**state, "model": dict(list(model.items())[:5])},
        "unknown": {**state, "cfg": unknown},
    }.items():
        torch.save(content, f"{name}.pt")


@pytest.mark.parametrize(("command", "changes", "said"), MISTAKES, ids=[said for _, _, said in MISTAKES])
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    command: str, changes: dict[str, str], said: str, place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for old, new in changes.items():
        assert old in command
        command = command.replace(old, new, 1)
    monkeypatch.chdir(place)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = sorted(path for path in place.rglob("*") if "out" not in path.parts)
    with pytest.raises(Exception) as caught:
        fairseq(*command.split())
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed):
        failures.report(caught.type, caught.value, caught.tb)
    assert printed.getvalue().startswith("seqstruct: ") and printed.getvalue().count("\n") == 1
    assert said in printed.getvalue()
    assert sorted(path for path in place.rglob("*") if "out" not in path.parts) == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("command", "said"), OWN, ids=[command for command, _ in OWN])
def test_so_is_one_with_a_command_of_our_own(
    command: str, said: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(place)
    before = sorted(place.rglob("*"))
    assert main(command.split()) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"seqstruct {command.split()[0]}: ") and printed.count("\n") == 1
    assert said in printed
    assert sorted(place.rglob("*")) == before
