"""Write pages of mechanisms, registered names and the API to docs/generated/, from registers and docstrings alone."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

from seqstruct.attention import ATTENTIONS
from seqstruct.cli.list import Mechanism, mechanisms, registrations

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "generated"
LAWS = ("test_laws", "test_laws_range", "test_laws_long")
SOURCES = (".sh", ".yaml")


def equations(text: str) -> dict[str, str]:
    """TeX by mechanism, from equations.txt: a line of names, then indented lines; # starts a comment."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            for name in names:
                found[name] = f"{found.get(name, '')}{line.strip()}\n"
        elif line and not line.startswith("#"):
            names = line.split()
    return found


def laws() -> dict[bool, list[str]]:
    """What the laws prove, in the words of their names; True: only of mechanisms with a step form."""
    found: dict[bool, list[str]] = {False: [], True: []}
    for file in LAWS:
        tree = ast.parse((ROOT / "seqstruct" / "testing" / f"{file}.py").read_text("utf-8"))
        for function in tree.body:
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                marks = {mark.id for mark in function.decorator_list if isinstance(mark, ast.Name)}
                words = function.name.removeprefix("test_").replace("_", " ")
                words += ", over long sequences" if file == "test_laws_long" else ""
                if marks & {"ALL", "STREAMING"}:
                    found["STREAMING" in marks].append(words)
    return found


def naming(name: str) -> list[Path]:
    """The recipes and configurations in whose text the name of a mechanism stands, from the root."""
    word = re.compile(rf"\b{name}\b")
    files = (f for top in ("recipes", "configs") for f in sorted((ROOT / top).rglob("*")) if f.suffix in SOURCES)
    return [f.relative_to(ROOT) for f in files if word.search(f.read_text("utf-8"))]


def recorded(files: list[Path]) -> list[str]:
    """"paper table" of each table with records whose recipe is one of these, or trains by configs beside one."""
    families = {str(Path(*f.parts[:3])) for f in files if f.parts[0] == "configs"}
    found = set()
    for script in sorted(ROOT.glob("recipes/*/*.sh")):
        text = script.read_text("utf-8")
        if script.relative_to(ROOT) in files or any(re.search(rf"{family}(?![\w-])", text) for family in families):
            found |= {(script.parent, table) for table in re.findall(r"\btable=\"?([\w.-]+)", text)}
    made = [(paper.name, name) for paper, name in sorted(found) if (paper / "records" / f"{name}.jsonl").exists()]
    return [f"{paper} {table}" for paper, table in made]


def listing(items: list[str], empty: str) -> str:
    """A list in markdown, or a sentence where there is nothing to list."""
    return "\n".join(f"* {item}" for item in items) or empty


def cell(text: str) -> str:
    """Text that a table's cell can hold."""
    return text.replace("|", "\\|")


def page(mechanism: Mechanism, tex: str, proved: dict[bool, list[str]]) -> str:
    """The page of one mechanism."""
    cls = ATTENTIONS[mechanism.name]
    file = (ROOT / Path(*cls.__module__.split("."))).with_suffix(".py")
    module = ast.parse(file.read_text("utf-8"))
    text = (ast.get_docstring(module) or "").partition("\n\n")[2]
    rows = [
        f"| `{o.name}` | `{o.default}` | {cell('; '.join(part for part in (o.help, o.limits) if part))} |"
        for o in mechanism.options
    ]
    head = "| option | default | meaning and limits |\n| --- | --- | --- |\n"
    options = head + "\n".join(rows) if rows else "None."
    files = naming(mechanism.name)
    flag = f"--{mechanism.sites[0].replace('_', '-')}-attention {mechanism.name}"
    form = "It has a step form and decodes with a state." if cls.streaming else "It needs the whole sequence at once."
    dropout = "uses" if cls.drops_weights else "does not use"
    proved_here = [*proved[False], *(proved[True] if cls.streaming else [])]
    return f"""# {mechanism.name}

{mechanism.summary}{f" ({mechanism.paper})" if mechanism.paper else ""}.

$$
{tex.strip()}
$$

{text}

Sites: {", ".join(site.replace("_", " ") for site in mechanism.sites)}; for instance `{flag}`.
{form} It {dropout} the dropout of attention weights.

## Options

{options}

## Laws it passes

Proved by `pytest -p seqstruct.testing --pyargs seqstruct.testing --attention {mechanism.name}`, at each of its sites:

{listing(proved_here, "None.")}

## Where it is used and recorded

Recipes and configurations that name it:

{listing([f"`{file}`" for file in files], "None.")}

Tables with records of rows that these have, `seqstruct report PAPER TABLE` prints them:

{listing([f"`{table}`" for table in recorded(files)], "None.")}
"""


def registered() -> str:
    """The names that fairseq's commands take, by kind."""
    lines = ["# Registered names", "", "What `seqstruct list` prints below the mechanisms."]
    for kind, names in registrations().items():
        lines += ["", f"## {kind.capitalize()}", "", "| name | what it is |", "| --- | --- |"]
        lines += [f"| `{name}` | {cell(said)} |" for name, said in names.items()]
    return "\n".join(lines) + "\n"


def api() -> dict[str, str]:
    """The pages of the API: `seqstruct.load`, `.nn`, `.distributions`, `.attention`, and each module and folder of
    `seqstruct.ops`, with an index."""
    pages = {"attention": "# seqstruct.attention\n\n::: seqstruct.attention\n"}
    shown = "    options:\n      merge_init_into_class: true\n      show_root_heading: true\n"
    of_text = ("loading.load.load", "loading.base.TextModel", "loading.base.Parse", "data.text.pipeline")
    for name, parts in (("nn", ["nn"]), ("load", of_text), ("distributions", ["distributions"])):
        pages[name] = f"# seqstruct.{name}\n\n" + "\n".join(f"::: seqstruct.{part}\n{shown}" for part in parts)
    rows = []
    for path in sorted((ROOT / "seqstruct" / "ops").glob("[!_]*")):
        face = path / "__init__.py" if path.is_dir() else path
        if not face.is_file():
            continue
        name = f"seqstruct.ops.{path.stem}"
        inside = [f"{name}.{module.stem}" for module in sorted(path.glob("[!_]*.py"))] if path.is_dir() else []
        pages[f"ops-{path.stem}"] = f"# {name}\n\n" + "\n".join(f"::: {module}\n" for module in [name, *inside])
        first = (ast.get_docstring(ast.parse(face.read_text("utf-8"))) or "").partition("\n")[0]
        rows.append(f"| [`{path.stem}`](ops-{path.stem}.md) | {first} |")
    pages["ops"] = "# seqstruct.ops\n\nPure functions on tensors; each needs torch alone.\n\n"
    pages["ops"] += "| module | what it has |\n| --- | --- |\n" + "\n".join(rows) + "\n"
    return pages


def write(name: str, text: str) -> None:
    """One page."""
    path = OUT / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def main() -> None:
    """All pages.  Raises ValueError if equations and mechanisms do not match."""
    for folder in ("api", "mechanisms"):
        shutil.rmtree(OUT / folder, ignore_errors=True)
    tex, proved, found = equations((ROOT / "docs" / "equations.txt").read_text("utf-8")), laws(), mechanisms()
    if unmatched := set(tex) ^ {m.name for m in found}:
        raise ValueError(f"docs/equations.txt and the register differ in {', '.join(sorted(unmatched))}")
    rows = "\n".join(f"| [`{m.name}`]({m.name}.md) | {cell(m.summary)} | {cell(m.paper)} |" for m in found)
    head = "# All mechanisms\n\n| mechanism | what it is | source |\n| --- | --- | --- |\n"
    write("mechanisms/index", f"{head}{rows}\n")
    for mechanism in found:
        write(f"mechanisms/{mechanism.name}", page(mechanism, tex[mechanism.name], proved))
    write("registered", registered())
    for name, text in api().items():
        write(f"api/{name}", text)


if __name__ == "__main__":
    main()
