"""What a recipe's shell script says: the rows of a table, and the commands of each cell, as plain lines for a shell.

recipes/common.sh has the other half: there the names of commands are functions that list themselves, so that what is
printed and what is run are one text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from seqstruct.harness.configs import read_config
from seqstruct.harness.records import PAPERS, SCALES

# as in seqstruct.ops.compiled, whose import would load torch, which a list of cells does not need
VARIABLE = "SEQSTRUCT_COMPILED"
SWITCH = {"0": False, "1": True}
DEVICE = "SEQSTRUCT_DEVICE"  # cuda: fairseq's commands run there, whatever the scale says
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
ESTIMATES = ("minutes", "disk", "download")
KEPT = ("table", "also", "dataset", "threads", "kernels", *ESTIMATES)  # of what a cell sets
LIMITS = ("optimization.stop_time_hours=", "--max-minutes")  # as recipes/common.sh gives them to what trains
SHARED = "finished"  # the file in a shared step's folder
# words that the shell makes when the command runs: what a search chose, the shards of prepared data
TABLE = re.compile(r"([\w.-]+):[a-z]")
CHOSEN = re.compile(r"([\w.]+=)?\$\((cat|python -m seqstruct\.data\.shards) ([^()'\"$`;|&<>]+)\)")


@dataclass(frozen=True)
class Cell:
    """One run: a row of a table, a seed, a scale ("smoke", "small" or "paper")."""

    row: str
    seed: int
    scale: str

    def __str__(self) -> str:
        return f"{self.row}, seed {self.seed}"


@dataclass(frozen=True)
class Step:
    """One line of a cell.  kind: prepare, shared, train, log, step or record.

    target: the folder that is made (prepare; shared, a training or search that several cells take), or the log's name.
    """

    kind: str
    words: tuple[str, ...]
    target: str = ""


@dataclass(frozen=True)
class Plan:
    """A cell's commands in its folder `out`.

    table, also (other tables), dataset, minutes (of one thread; of one GPU where the recipe says so), disk and download
    (MiB; a download counts once), threads (of its commands, by default one but at scale paper): as the recipe says.
    compiled: whether kernels are, as the recipe or else the environment says it, None where neither does.  gpu: whether
    what scales smoke and small leave to the processor runs on a GPU.  configuration: sixteen hexadecimal digits over
    all that decides its numbers, seed, device and places of files apart: the commands and the configs that they
    compose.
    """

    script: Script
    cell: Cell
    out: Path
    records: Path
    steps: tuple[Step, ...]
    configuration: str
    table: str
    also: str
    dataset: str
    minutes: float
    disk: float
    download: float
    threads: str
    compiled: bool | None
    gpu: bool = False

    @property
    def tables(self) -> set[str]:
        """Those that its numbers stand in: its own, and what is named in front of a metric or a file of metrics."""
        named = (TABLE.match(word) for step in self.steps for word in step.words)
        return {self.table, *self.also.split(), *(match[1] for match in named if match)}

    @property
    def place(self) -> Path:
        """Its folder as commands name it."""
        return _from(self.script.root, self.out)

    def line(self, step: Step) -> str:
        """A step as a line for bash, from the root of the repository."""
        words = _joined(step.words)
        if step.kind == "prepare":
            return f"[ -d {shlex.quote(step.target)} ] || {words}"
        if step.kind == "shared":
            folder, mark = shlex.quote(step.target), shlex.quote(f"{step.target}/{SHARED}")
            if step.words[0] == "fairseq-hydra-train":
                words = f"mkdir -p {folder} && {words} 2>&1 | tee -a {shlex.quote(f'{step.target}/train.log')}"
            return f"[ -e {mark} ] || {{ {words} && touch {mark}; }}"
        if step.kind in ("train", "log"):
            # a training that goes on appends to its log
            tee = "tee -a" if step.kind == "train" else "tee"
            return f"{words} 2>&1 | {tee} {shlex.quote(str(self.place / step.target))}"
        if step.kind == "record":
            data = next((s.target for s in reversed(self.steps) if s.kind == "prepare"), "")
            words = ["seqstruct", "record", str(self.place), *step.words, "--paper", self.script.paper]
            words += ["--table", self.table, "--row", self.cell.row, "--seed", str(self.cell.seed)]
            words += ["--scale", self.cell.scale, "--dataset", self.dataset, "--configuration", self.configuration]
            words += ["--command", self.command, "--records", str(self.records)]
            return shlex.join([*words, *(["--data", data] if data else [])])
        return words

    @property
    def environment(self) -> dict[str, str]:
        """What stands before the commands: how many threads, and whether kernels are compiled."""
        threads = self.threads or ("" if self.cell.scale == "paper" else "1")
        found = dict.fromkeys(THREADS, threads) if threads else {}
        return found if self.compiled is None else {**found, VARIABLE: str(int(self.compiled))}

    @property
    def command(self) -> str:
        """The recipe's command that makes it, from the root of the repository."""
        name = Path("recipes", *self.script.path.resolve().parts[-2:])
        compiled = "" if self.compiled is None else f"{VARIABLE}={int(self.compiled)} "
        device = f"{DEVICE}=cuda " if self.gpu else ""
        return f'{device}{compiled}{name} --scale {self.cell.scale} --row "{self.cell.row}" --seeds {self.cell.seed}'

    def text(self) -> str:
        """The whole cell, to be pasted into a shell in which the package's environment is active."""
        exports = [f"{name}={value}" for name, value in self.environment.items()]
        head = [
            f"# {self.script.paper}, table {self.table}: {self.cell}, scale {self.cell.scale}",
            f"# data: {self.dataset}",
            "set -o pipefail",
            f"cd {shlex.quote(str(self.script.root))}",
            *([f"export {' '.join(exports)}"] if exports else []),
            f"mkdir -p {shlex.quote(str(self.place))}",
        ]
        return "\n".join([*head, *map(self.line, self.steps)]) + "\n"


@dataclass(frozen=True)
class Script:
    """A recipe: recipes/<paper>/<name>.sh.  Raises ValueError, when it is read, if it does not say what it has to."""

    path: Path

    @cached_property
    def root(self) -> Path:
        """The repository's root, from which commands are run."""
        return self.path.resolve().parent.parent.parent

    @cached_property
    def _head(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for kind, words in self._call("rows", {"scale": "small"}):
            found.setdefault(kind, []).extend(word for word in words if word)
        if (found.get("paper") or [""])[0] not in PAPERS:
            raise ValueError(f"{self.path}: expected paper to be one of {', '.join(PAPERS)}")
        if not found.get("rows"):
            raise ValueError(f"{self.path}: it has no rows")
        return found

    def _one(self, name: str, default: str = "") -> str:
        return (self._head.get(name) or [default])[0]

    @property
    def paper(self) -> str:
        """As in paper.json."""
        return self._one("paper")

    @property
    def table(self) -> str:
        """That of scale paper."""
        return self._one("table")

    @property
    def licence(self) -> str:
        """Of the data."""
        return self._one("licence")

    @property
    def family(self) -> str:
        """Of models; continuous integration runs one recipe of each."""
        return self._one("family")

    @property
    def doc(self) -> str:
        """The comment at its head."""
        lines = self.path.read_text(encoding="utf-8").split("\n")[1:]
        head = lines[: next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))]
        return "\n".join(line[1:].removeprefix(" ") for line in head)

    def rows(self, scale: str) -> list[str]:
        """The names of a scale's rows, baselines apart."""
        return list(self._head.get(f"{scale}_rows") or self._head["rows"])

    def baselines(self, scale: str) -> list[str]:
        """Rows that the data alone decide."""
        return list(self._head.get(f"{scale}_baselines") or self._head.get("baselines", ()))

    def seeds(self, row: str, scale: str) -> range:
        """The seeds of a row: a baseline has one."""
        count = 1 if row in self.baselines(scale) else int(self._one(f"seeds_{scale}", "1"))
        return range(1, count + 1)

    def cells(
        self, scale: str, rows: Sequence[str] | None = None, seeds: Sequence[int] | None = None
    ) -> list[Cell]:
        """The cells of a scale whose rows match one of the patterns (all if None), in the order of the rows.

        A row of any scale may be named outright.  A baseline whose commands are the same with every seed has the first
        seed alone.  Raises ValueError if a pattern matches no row, or for another scale.
        """
        if scale not in SCALES:
            raise ValueError(f"scale {scale!r} is unknown; scales: {', '.join(SCALES)}")
        known = self.rows(scale) + self.baselines(scale)
        every = list(dict.fromkeys(known + [row for s in SCALES for row in self.rows(s) + self.baselines(s)]))
        chosen: list[str] = [] if rows else known
        for pattern in rows or ():
            matching = [row for row in known if fnmatchcase(row, pattern)] or [row for row in every if row == pattern]
            if not matching:
                raise ValueError(f"no row matches {pattern!r}; rows: {'; '.join(known)}")
            chosen += [row for row in matching if row not in chosen]
        return [Cell(row, seed, scale) for row in chosen for seed in self._seeds(row, scale, seeds)]

    def _seeds(self, row: str, scale: str, asked: Sequence[int] | None) -> Sequence[int]:
        if not asked or (list(asked) != [1] and row in self.baselines(scale) and not self._draws(row, scale)):
            return self.seeds(row, scale)
        return asked

    def _draws(self, row: str, scale: str) -> bool:
        """Whether a row's commands differ by the seed."""
        first, second = (self._cell(Cell(row, n, scale), Path("OUT"), Path("RUNS"), source=None) for n in (1, 2))
        return first != second

    def estimate(self, cell: Cell) -> tuple[str, float, float]:
        """The cell's table, minutes and MiB on disk, as of `Plan`, without the rest of its plan."""
        said = dict(self._cell(cell, Path("OUT"), Path("RUNS"), source=None))
        return said["table"][0], float(said["minutes"][0] or 0), float(said["disk"][0] or 0)

    def plan(
        self,
        cell: Cell,
        *,
        runs: str | os.PathLike = "runs",
        source: str | os.PathLike | None = None,
        records: str | os.PathLike | None = None,
        max_minutes: float | None = None,
        compiled: bool | None = None,
    ) -> Plan:
        """The commands of a cell.

        runs: where runs and data are kept.  source: the folder of raw data, or None: that of the reference, else
        downloads.  records: where they go (default: beside the script; a smoke run's are no results and stay among the
        paper's runs).  max_minutes: of each training, which makes it another configuration; or None.  compiled: whether
        kernels are, where the recipe does not say; None: as the environment has it.
        Raises ValueError if SEQSTRUCT_DEVICE is neither cpu, cuda nor empty.
        """
        device = os.environ.get(DEVICE) or "cpu"
        if device not in ("cpu", "cuda"):
            raise ValueError(f"expected {DEVICE} to be cpu or cuda, got {device!r}")
        folder = _from(self.root, Path(runs).resolve() / self.paper)
        said = self._cell(cell, Path("OUT"), Path("RUNS"), source=None, reference=False, max_minutes=max_minutes)
        head = {kind: words[0] for kind, words in said if kind in KEPT}
        whole = [self.paper, head["table"], cell.row, cell.scale, self._decisive(said)]
        configuration = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]
        name = f"{_file_name(cell.row)}-{cell.scale}-{configuration[:8]}-seed{cell.seed}"
        out = folder / _file_name(head["table"]) / name
        if records is None:
            records = self.root / folder if cell.scale == "smoke" else self.path.resolve().parent
            records /= "records"
        steps = tuple(_steps(self.root, self._cell(cell, out, folder, source=source, max_minutes=max_minutes)))
        if device == "cuda":
            steps = tuple(map(_on_gpu, steps))
        if not steps or steps[-1].kind != "record":
            raise ValueError(f"{self.path}: {cell}: expected a cell to end with `record`")
        if head["kernels"]:
            if head["kernels"] not in SWITCH:
                raise ValueError(f"{self.path}: {cell}: expected kernels=0 or 1, got {head['kernels']!r}")
            compiled = SWITCH[head["kernels"]]
        elif compiled is None:
            compiled = SWITCH.get(os.environ.get(VARIABLE, ""))
        numbers = {}
        for name in (*ESTIMATES, "threads"):
            try:
                numbers[name] = float(head[name] or 0)
            except ValueError:
                raise ValueError(f"{self.path}: {cell}: {name}={head[name]!r} is no number") from None
        limited = max_minutes is not None and any(word.startswith(LIMITS) for _, words in said for word in words)
        limit = f", trainings of at most {max_minutes:g} minutes" if limited else ""
        return Plan(
            self, cell, self.root / out, _from(self.root, Path(records).resolve()), steps, configuration,
            head["table"], head["also"], head["dataset"] + limit, compiled=compiled,
            gpu=device == "cuda", **{**numbers, "threads": head["threads"]},
        )

    def _cell(
        self, cell: Cell, out: Path, runs: Path, *, source: str | os.PathLike | None, reference: bool = True,
        max_minutes: float | None = None,
    ) -> list[tuple[str, tuple[str, ...]]]:
        # what is hashed is that of seed 1, with no place of a file in it
        seed = cell.seed if reference else 1
        values = {"row": cell.row, "seed": str(seed), "scale": cell.scale, "out": str(out), "runs": str(runs)}
        if source is not None:
            values["given"] = str(Path(source).resolve())
        if max_minutes is not None:
            values["max_minutes"] = f"{max_minutes:g}"
        return list(self._call("cell", values, reference=reference))

    def _decisive(self, said: Sequence[tuple[str, tuple[str, ...]]]) -> list:
        """All words of the commands, and the configs that they name."""
        found: list = []
        for kind, words in said:
            if kind in ("train", "log", "step", "prepare", "shared", "record"):
                found.append([kind, *words])
                found += [config for config in (read_config(self.root, words),) if config is not None]
        return found

    def _call(
        self, what: str, values: Mapping[str, str], *, reference: bool = True
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        if self.path.suffix != ".sh" or not self.path.is_file():
            raise ValueError(f"{self.path}: expected a recipe, a shell script recipes/PAPER/NAME.sh")
        kept = ("PATH", "HOME", "TMPDIR", *(("SEQSTRUCT_REFERENCE",) if reference else ()))
        # a variable of the user's that has the name of one of a recipe's would be taken for it
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {**values, "SEQSTRUCT_RECIPE": what, "LC_ALL": "C"}
        done = subprocess.run(
            ["bash", str(self.path)], env=environment, capture_output=True, text=True, check=False, cwd=self.root
        )
        if done.returncode != 0:
            said = done.stderr.strip().partition("\n")[0]
            raise ValueError(said or f"{self.path}: it ended with status {done.returncode}")
        words = iter(done.stdout.split("\0"))
        for kind in words:
            if kind:
                yield kind, tuple(next(words) for _ in range(int(next(words))))


def _steps(root: Path, said: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[Step]:
    named: dict[str, str] = {}  # shared folders, and the same with what decides their contents
    for kind, words in said:
        for folder, full in named.items():
            words = tuple(word.replace(folder, full) for word in words)
        if kind == "shared":
            whole = json.dumps([words, read_config(root, words)], sort_keys=True)
            folder, full = words[0], f"{words[0]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
            named[folder] = full
            words = tuple(word.replace(folder, full) for word in words)
        if kind in ("prepare", "shared", "train", "log"):
            yield Step(kind, words[1:], words[0])
        elif kind in ("step", "record"):
            yield Step(kind, words)


def _on_gpu(step: Step) -> Step:
    words = tuple(word for word in step.words if word != "--cpu")
    return replace(step, words=(*words, *(["common.cpu=false"] if "fairseq-hydra-train" in words else [])))


def _joined(words: Sequence[str]) -> str:
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    chosen = CHOSEN.fullmatch(word)
    if chosen is None:
        return shlex.quote(word)
    name, command, path = chosen.groups(default="")
    # what a file says is several words, a list of shards is one
    made = f"$({command} {shlex.quote(path)})"
    return f"{name}{made}" if command == "cat" else f'{name}"{made}"'


def _from(root: Path, path: Path) -> Path:
    """A path as it is named from the repository's root."""
    return path.relative_to(root) if path.is_relative_to(root) else path


def _file_name(name: str) -> str:
    """Letters, digits, '.', '+' and '-' stay, all else becomes '-'."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-")


def scripts(recipes: Path) -> list[Script]:
    """The recipes in the folders of papers, in the order of their names; not those that hand over to another."""
    found = sorted(path for path in recipes.glob("*/*.sh"))
    return [Script(path) for path in found if "\ncell() {" in path.read_text(encoding="utf-8")]
