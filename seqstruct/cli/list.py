"""`seqstruct list`: every mechanism with its sites, options and source, and what is registered with fairseq.

Architectures, tasks and criterions are those that seqstruct registers.
Nothing is written twice: the summary and the source of a mechanism are the first sentence of its module's docstring,
"Summary (Source): ...", and an option's help is the comment that stands on its line in `Config`, followed by the limits
declared there.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import io
import re
import textwrap
import tokenize
from typing import Any, NamedTuple

from seqstruct.command import markdown_table

SITES = ("encoder_self", "decoder_self", "cross")
CITATION = re.compile(r"\s*\(([^()]*\b(?:19|20)\d\d\b[^()]*)\)")


class Option(NamedTuple):
    """One option of a mechanism; default is its Python literal, "" if it must be given; help may be empty.

    limits: what its value may be, in words, "" if nothing is declared.
    """

    name: str
    default: str
    help: str
    limits: str


class Mechanism(NamedTuple):
    """What is told of one mechanism; paper is "" where the docstring cites none."""

    name: str
    sites: tuple[str, ...]
    summary: str
    paper: str
    options: tuple[Option, ...]


def comments(cls: type) -> dict[str, str]:
    """The comment on the line of each annotated field of a class and of its bases, where the source is at hand."""
    inherited: dict[str, str] = {}
    for base in reversed(cls.__bases__):
        inherited |= {} if base is object else comments(base)
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return inherited
    at_line = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    fields = [node for node in ast.parse(source).body[0].body if isinstance(node, ast.AnnAssign)]
    return inherited | {node.target.id: at_line[node.end_lineno] for node in fields if node.end_lineno in at_line}


def options(config: type) -> tuple[Option, ...]:
    from seqstruct.attention.option import default_of, limits_of

    helps = comments(config)
    found = []
    for field in dataclasses.fields(config):
        default = default_of(field)
        shown = "" if default is dataclasses.MISSING else repr(default)
        said = field.metadata.get("help", helps.get(field.name, ""))
        found.append(Option(field.name, shown, said, str(limits_of(field) or "")))
    return tuple(found)


def source(docstring: str) -> tuple[str, str]:
    """Summary and paper from the first sentence of a docstring, "Summary (Paper): more.", the paper left out of it."""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    cited = CITATION.search(paragraph)
    text = paragraph[: cited.start()] + paragraph[cited.end() :] if cited else paragraph
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0], cited.group(1) if cited else ""


def mechanisms() -> list[Mechanism]:
    from seqstruct.attention import ATTENTIONS

    found = []
    for name, cls in sorted(ATTENTIONS.items()):
        summary, paper = source(inspect.getmodule(cls).__doc__ or cls.__doc__ or "")
        sites = tuple(site for site in SITES if site in {s.value for s in cls.sites})
        found.append(Mechanism(name, sites, summary, paper, options(cls.Config)))
    return found


def registrations() -> dict[str, dict[str, str]]:
    """What seqstruct registers with fairseq: for each kind, the names and the first line of the docstring.

    Raises ImportError if fairseq is missing or does not import.
    """
    from fairseq.criterions import CRITERION_REGISTRY
    from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    import seqstruct.models
    import seqstruct.tasks  # noqa: F401

    # a preset is told of by the function that sets its options, a model by its class
    presets = {name: preset for name, preset in ARCH_CONFIG_REGISTRY.items() if ours(preset)}
    kinds = {
        "architectures": {**ARCH_MODEL_REGISTRY, **presets},
        "tasks": TASK_REGISTRY,
        "criterions": CRITERION_REGISTRY,
    }
    return {
        kind: {name: (inspect.getdoc(found) or "").partition("\n")[0]
               for name, found in sorted(registry.items()) if ours(found)}
        for kind, registry in kinds.items()
    }


def ours(registered: Any) -> bool:
    """Whether something in fairseq's registers comes from here."""
    return registered.__module__.partition(".")[0] == "seqstruct"


def as_text(found: list[Mechanism]) -> str:
    lines = ["attention mechanisms"]
    for mechanism in found:
        lines.append(f"  {mechanism.name}: {mechanism.summary}")
        lines.append(f"      sites: {', '.join(mechanism.sites)}")
        if mechanism.paper:
            lines.append(f"      paper: {mechanism.paper}")
        for option in mechanism.options:
            default = f"={option.default}" if option.default else " (must be given)"
            told = "; ".join(part for part in (option.help, option.limits) if part)
            lines.append(f"      {option.name}{default}" + (f"  {told}" if told else ""))
    return "\n".join(lines)


def as_markdown(found: list[Mechanism]) -> str:
    rows = []
    for m in found:
        chosen = ", ".join(f"`{o.name}={o.default}`" if o.default else f"`{o.name}`" for o in m.options)
        sites = ", ".join(site.replace("_", " ") for site in m.sites)
        rows.append([f"`{m.name}`", m.summary, sites, chosen, m.paper])
    return markdown_table(["mechanism", "what it is", "sites", "options and defaults", "source"], rows)


def corpora() -> str:
    from seqstruct.data.registry import ENTRIES

    rows = ([f"`{e.name}`", e.help, e.licence, f"`{e.use}`", "yes" if e.made_up else ""] for e in ENTRIES)
    return markdown_table(["name", "what it is", "licence", "fairseq's task", "`--made-up`"], rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=("text", "markdown"), default="text", help="markdown: the table of mechanisms alone"
    )
    parser.add_argument("--corpora", action="store_true", help="the table of what `seqstruct prepare` makes instead")


def run(args: argparse.Namespace) -> None:
    """Print the list; what needs fairseq is left out, with a sentence, where fairseq does not import."""
    if args.corpora:
        print(corpora())
        return
    if args.format == "markdown":
        print(as_markdown(mechanisms()))
        return
    print(as_text(mechanisms()))
    try:
        registered = registrations()
    except ImportError as error:
        print(f"\narchitectures, tasks and criterions need fairseq ({error}); `seqstruct doctor` names the fix")
        return
    for kind, names in registered.items():
        print(f"\n{kind}")
        for name, line in names.items():
            print(f"  {name}" + (f"  {line}" if line else ""))
