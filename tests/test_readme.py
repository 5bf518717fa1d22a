"""README.md, those of recipes/, and docs/ are true: blocks are current, commands parse, paths exist, code runs."""

import math
import os
import re
import runpy
import shlex
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.stats import ttest_ind

from seqstruct.attention import ATTENTIONS
from seqstruct.benchmarks.comparisons import summary
from seqstruct.cli import build_parser
from seqstruct.cli import main as seqstruct
from seqstruct.cli.prepare import build_parser as options_of
from seqstruct.data.registry import find
from seqstruct.harness.paper import read_tables
from seqstruct.harness.records import read_folder
from seqstruct.harness.report import lines_of

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
FILLING = runpy.run_path(str(ROOT / ".ci" / "readme.py"))
DOCUMENTS = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in FILLING["documents"]()}
FILLED = [name for name, text in DOCUMENTS.items() if FILLING["BLOCK"].search(text)]
MECHANISM = "linear_memory"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", "\n".join(DOCUMENTS.values()), re.S | re.M)


def commands():
    """The different command lines of all bash blocks, continuation lines joined, without redirections."""
    return dict.fromkeys(lines())


def lines():
    for block in blocks("bash"):
        for line in block.replace("\\\n", " ").splitlines():
            yield line.replace('"$(seqstruct path)"', str(ROOT / "seqstruct")).partition(" > ")[0].strip()


def starting_with(program):
    return [pytest.param(line, id=line[:60]) for line in commands() if line.split()[0] == program]


@pytest.mark.parametrize("name", FILLED)
def test_filled_blocks_are_what_the_commands_print(name):
    assert FILLING["fill"](DOCUMENTS[name]) == DOCUMENTS[name], "run `make readme`"


@pytest.mark.parametrize("front", [False, True])
def test_the_comparisons_of_speed_are_those_of_the_measurements_in_both_directions(front):
    table = summary((ROOT / "recipes" / "SPEED.md").read_text("utf-8"), front)
    assert table in DOCUMENTS["README.md" if front else "docs/speed.md"]
    slower = [line for line in table.splitlines() if re.search(r"\| 0\.\d", line)]
    assert slower and len(slower) < len(table.splitlines()) - 2


def test_every_command_stands_in_a_document():
    (commands,) = (a.choices for a in build_parser()._actions if a.dest == "command")
    text = "\n".join(DOCUMENTS.values())
    assert {name for name in commands if f"seqstruct {name}" not in text} <= {"cell", "record"}, "which recipes call"
    assert "`seqstruct prepare scan`" in README and "`seqstruct score-transformations`" in README


def test_the_front_page_is_short():
    assert len(README.splitlines()) <= 150


def results(paper, name):
    """The lines of a table with runs, by row and metric."""
    folder = ROOT / "recipes" / paper
    (table,) = [table for table in read_tables(folder) if table.name == name]
    found = lines_of(table, read_folder(folder / "records"), ("small", "paper"))
    return {(line.row, line.metric): line for line in found if line.values}


def test_the_results_of_the_front_page_are_few_clean_and_those_of_the_records():
    section = README.partition("\n## Results\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]
    assert 1 <= len(rows) <= 10
    found = results("structured_attention", "2")
    for name, *cells in rows:
        for depth, cell in enumerate(cells, 2):
            line = found[name, f"length_to_failure_depth_{depth}"]
            assert cell == f"{line.mean:.1f} ± {line.deviation:.1f} ({line.published:.1f})"
            assert len(line.values) >= 3 and line.scale == "paper"
            assert all(re.fullmatch("[0-9a-f]{7,}", run.versions["commit"]) for run in line.runs.values())


def test_what_the_front_page_says_is_not_reproduced_is_not():
    text = " ".join(README.partition("\nNot reproduced: ")[2].partition("\n\n")[0].split())
    formulas = results("structured_attention", "2")
    reached = [formulas[row, "length_to_failure"].mean for row in ("Structured", "Simple", "constant", "No attention")]
    values = [[*formulas[row, "length_to_failure"].values.values()] for row in ("Structured", "Simple")]
    p = ttest_ind(*values, equal_var=False).pvalue
    said = "structured attention has {:.1f}, simple attention {:.1f} (p {:.1g}); one constant form for all formulas "
    said += "has {:.1f}"
    assert said.format(*reached[:2], p, reached[2]) in " ".join(README.split())
    assert reached == sorted(reached, reverse=True)
    assert "the rational models' published order does not show on Brown" in text
    order = [f"RRNN({kind} 2 layers 10M" for kind in ("F)", "B)", "C)", "B) max-plus")]
    brown = results("peng_thesis", "6.3-stand-in")
    assert sorted(order, key=lambda row: brown[row, "test_perplexity"].mean) != order
    averages = [line for (row, metric), line in results("structured_attention", "4").items()
                if row.startswith("average") and metric == "test_accuracy"]
    short = sorted(line.published - line.best for line in averages)
    assert f"on bAbI all models are below theirs, by {short[0]:.1f} to {short[-1]:.1f} points" in text
    assert "on short ListOps three seeds tell no other attention from softmax" in text
    assert "(with fixed ones F does, on SST and subj)" in text
    fixed = results("peng_thesis", "6.5-skip-gram")
    assert all(fixed[f"{corpus} RRNN(F), skip-gram", "test_accuracy"].p_value < 0.05 for corpus in ("SST", "subj"))
    accuracy = {row: line for (row, metric), line in results("peng_thesis", "4.5-stand-in").items()
                if metric == "test_accuracy"}
    others = [line for line in accuracy.values() if line.kind != "baseline" and line.row != "ListOps Transformer"]
    assert len(others) == 10 and all(len(line.values) == 3 and line.p_value > 0.05 for line in others)


def test_the_correlation_by_seed_that_speaks_for_an_unpaired_test_is_that_of_the_records():
    found = results("structured_attention", "4")
    (table,) = [table for table in read_tables(ROOT / "recipes" / "structured_attention") if table.name == "4"]
    pairs = [
        (line, found[table.against(row), metric]) for (row, metric), line in found.items()
        if metric in table.tests and line.runs and (table.against(row), metric) in found
    ]
    assert all(len(line.values) == 20 and line.values.keys() == other.values.keys() for line, other in pairs)
    mean = statistics.fmean(statistics.correlation([*a.values.values()], [*b.values.values()]) for a, b in pairs)
    text = " ".join(DOCUMENTS["docs/recipes.md"].split())
    assert "the mean correlation by seed is below 0.1 in size" in text and abs(mean) < 0.1


@pytest.mark.parametrize("line", starting_with("seqstruct"))
def test_commands_of_seqstruct_parse(line):
    args = build_parser().parse_args(shlex.split(line)[1:])
    assert callable(args.run)
    if args.command == "prepare":
        assert options_of(find(args.name)).parse_args(args.options).out


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("data-prep/")])
def test_options_of_the_scripts_of_data_prep_parse(line):
    script, *given = shlex.split(line, comments=True)
    call = (ROOT / script).read_text("utf-8").splitlines()[-1]
    name, *options = [*shlex.split(call)[1:-1], *given]
    assert options_of(find(name)).parse_args(options).out


@pytest.mark.parametrize("line", starting_with("fairseq-train"))
def test_commands_of_fairseq_train_parse(line):
    from fairseq import options

    import seqstruct.models
    import seqstruct.tasks  # noqa: F401

    arguments = shlex.split(line)[1:]
    args = options.parse_args_and_arch(options.get_training_parser(), arguments)
    for option, value in zip(arguments, arguments[1:], strict=False):
        if option.endswith("-attention"):
            assert getattr(args, option[2:].replace("-", "_")) == value


@pytest.mark.parametrize("line", starting_with("fairseq-generate"))
def test_commands_of_fairseq_generate_parse(line):
    from fairseq import options

    import seqstruct.models
    import seqstruct.tasks  # noqa: F401

    args = options.parse_args_and_arch(options.get_generation_parser(), shlex.split(line)[1:])
    assert args.beam in (4, 5)


@pytest.mark.parametrize("line", starting_with("python"))
def test_options_of_recipes_are_in_their_help(line):
    script, *arguments = shlex.split(line)[1:]
    what = ["-m", arguments.pop(0)] if script == "-m" else [ROOT / script]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *what, "--help"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    for option in arguments:
        assert not option.startswith("--") or option in done.stdout


def test_paths_exist():
    text = "\n".join(DOCUMENTS.values())
    for name in set(re.findall(r"`((?:seqstruct|recipes|configs|data-prep|tests)/[\w./-]*)`", text)):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"^(data-prep/\S+|[\w/]+\.py)", "\n".join(blocks("bash")), re.M):
        assert (ROOT / name).exists(), name
    for name in ("LICENSE", "CITATION.cff", "constraints.txt"):
        assert f"`{name}`" in README
        assert (ROOT / name).is_file()


def test_links_lead_somewhere():
    """Those between files; mkdocs checks the anchors of docs/, and what is generated."""
    for name, text in DOCUMENTS.items():
        for target in re.findall(r"\]\(([^)#]+)(?:#[\w-]*)?\)", text):
            if not target.startswith("http") and "generated/" not in target:
                assert (ROOT / name).parent.joinpath(target).exists(), f"{name}: {target}"


def test_code_compiles():
    for block in blocks("python"):
        compile(block, "docs", "exec")


def test_every_page_has_its_place_in_the_site():
    site = (ROOT / "mkdocs.yml").read_text("utf-8")
    for name in DOCUMENTS:
        if name.startswith("docs/"):
            assert f": {name.removeprefix('docs/')}\n" in site, name


def test_every_mechanism_has_an_equation():
    equations = runpy.run_path(str(ROOT / ".ci" / "docs.py"))["equations"]
    assert set(equations((ROOT / "docs" / "equations.txt").read_text("utf-8"))) == set(ATTENTIONS)


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    code = "\n".join(re.findall(r"`[^`\n]+`|^    .+$", "\n".join(DOCUMENTS.values()), re.M))
    for target in re.findall(r"\bmake (?:\w+=\S+ )?([a-z-]+)\b", code):
        assert f"\n{target}:" in makefile, target


def test_this_package_is_installed_where_its_build_sees_torch():
    shown = re.findall(r"pip install [^`\n]*\s\.(?=`|$)", "\n".join(DOCUMENTS.values()), re.M)
    assert len(shown) >= 3
    assert all("--no-build-isolation" in line for line in shown), "an isolated build has no kernels"


def test_jobs_of_a_cluster_state_their_time():
    joined = "\n".join(DOCUMENTS.values()).replace("\\\n", " ")
    shown = [line for line in joined.splitlines() if line.strip().startswith("recipes/") and "--launcher slurm" in line]
    assert shown and all("time=" in line for line in shown), "submitit asks for five minutes"


def test_the_example_of_one_layer_runs():
    example = next(block for block in blocks("python") if block.startswith("import torch\n"))
    exec(compile(example, "README.md", "exec"), {"__name__": "example"})


def test_the_language_of_ones_own_that_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = DOCUMENTS["docs/tutorials/your_language.md"]
    shown = re.findall(r"^```text\n(.*?)^```$", text, re.S | re.M)
    for name, content in zip(("clauses.cfg", "weather.wfsa"), shown, strict=True):
        Path(name).write_text(content, "utf-8")
    for line in (line for line in commands() if line.startswith("seqstruct prepare cfl --")):
        assert seqstruct([*shlex.split(line)[1:], "--train", "20", "--valid", "5", "--test-per-length", "1"]) == 0
    assert seqstruct(["baseline", "trigram", "data-bin/clauses"]) == 0
    capsys.readouterr()
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)
    exec(compile(code, "your_language.md", "exec"), {"__name__": "example"})
    following = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()[2:]]
    assert math.isclose(sum(following), 1.0, rel_tol=1e-9)


def with_the_mechanism_shown(inside, folder):
    """A function that runs Python where docs/extending.md's mechanism is a file, of a package's copy or a plugin."""
    source = next(block for block in blocks("python") if f'@register_attention("{MECHANISM}"' in block)
    shutil.copytree(ROOT / "seqstruct", folder / "seqstruct")
    file = folder / ("seqstruct/attention" if inside else "") / f"{MECHANISM}.py"
    file.write_text(source, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    if not inside:
        environment["SEQSTRUCT_PLUGINS"] = file.name

    def run(*arguments):
        return subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
        )

    return run


@pytest.mark.parametrize("inside", [True, False])
def test_the_mechanism_shown_is_one_file_that_is_found(inside, tmp_path):
    run = with_the_mechanism_shown(inside, tmp_path)
    done = run(
        "-c",
        "from seqstruct.attention import Site, parse_choices\n"
        "from seqstruct.cli import main\n"
        f"print(*parse_choices('softmax*2 + {MECHANISM}(size=8)', 3, Site.CROSS))\n"
        "main(['list', '--format', 'markdown'])",
    )
    planned, _, listed = done.stdout.partition("\n")
    assert planned == f"softmax softmax {MECHANISM}(size=8)", done.stderr
    row = f"| `{MECHANISM}` | Linear attention with one head: the memory is a sum of outer products | encoder self,"
    assert row in listed


@pytest.mark.parametrize("laws", ["not slow", pytest.param("", marks=pytest.mark.slow)])
def test_the_mechanism_shown_obeys_the_laws(laws, tmp_path):
    run = with_the_mechanism_shown(False, tmp_path)
    command = next(line for line in DOCUMENTS["docs/extending.md"].splitlines() if line.startswith("    pytest "))
    tested = run("-m", *shlex.split(command), "-m", laws, "-q", "-p", "no:cacheprovider")
    assert tested.returncode == 0, tested.stdout
    assert re.search(r"^\d{2,} passed", tested.stdout.splitlines()[-1]), tested.stdout
