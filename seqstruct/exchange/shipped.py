"""The code that an exported model needs where this package is not installed: of each module what is used of it.

transformers fetches the files beside a model by their relative imports, from one flat folder: `seqstruct.ops.masking`
is `seqstruct_ops_masking.py` there, and names are imported from where they are defined.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

PACKAGE, WHOLE = "seqstruct", "*"
HEADER = "# Of seqstruct {version}, what this model uses; under the licence in the file LICENSE beside it.\n"


@dataclass
class _Source:
    """A module as text, its top-level statements by the names that they define, and which of these are used."""

    name: str
    text: str
    statements: dict[str, ast.stmt]
    package: bool
    used: set[str] = field(default_factory=set)


def shipped(roots: Iterable[tuple[str, str]], beside: Mapping[str, Iterable[tuple[str, str]]], version: str) -> dict:
    """Files by name, each a module's text, for (module, name) roots; the name of a whole module is WHOLE.

    beside: by module, (module, name) that it is to import though it does not say so, as a register's entries.
    Raises ValueError on an import that has no counterpart in a flat folder.
    """
    sources: dict[str, _Source] = {}
    beside = {module: list(entries) for module, entries in beside.items()}
    waiting = [*roots, *(entry for entries in beside.values() for entry in entries)]
    while waiting:
        module, name = _origin(*waiting.pop(), sources)
        source = _read(module, sources)
        if name == WHOLE:
            waiting += [(module, each) for each, what in source.statements.items() if not _imports(what)]
        if name == WHOLE or name in source.used:
            continue
        source.used.add(name)
        statement = source.statements.get(name)
        if statement is None:
            raise ValueError(f"{module} defines no {name}")
        inner = {local: (from_, what) for node in ast.walk(statement) for local, from_, what in _own(node)}
        waiting += inner.values()
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in source.statements and node.id not in inner:
                waiting.append((module, node.id))
    head = HEADER.format(version=version)
    return {f"{flat(name)}.py": head + _write(source, sources, beside.get(name, ())) for name, source in sources.items()
            if not all(_imports(source.statements[used]) for used in source.used)}


def flat(module: str) -> str:
    """The name of a module in a flat folder."""
    return module.replace(".", "_")


def _read(module: str, sources: dict[str, _Source]) -> _Source:
    if module not in sources:
        path = Path(find_spec(module).origin)
        text = path.read_text(encoding="utf-8")
        statements: dict[str, ast.stmt] = {}
        for statement in ast.parse(text).body:
            for name in _defined(statement):
                statements[name] = statement
        sources[module] = _Source(module, text, statements, path.name == "__init__.py")
    return sources[module]


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _own(node: ast.AST) -> list[tuple[str, str, str]]:
    """(local name, module, name) of what a node imports of this package."""
    if isinstance(node, ast.Import) and any(alias.name.partition(".")[0] == PACKAGE for alias in node.names):
        raise ValueError(f"line {node.lineno}: expected `from seqstruct... import ...`")
    if not isinstance(node, ast.ImportFrom) or (node.module or "").partition(".")[0] != PACKAGE:
        return []
    return [(alias.asname or alias.name, node.module, alias.name) for alias in node.names]


def _imports(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def _origin(module: str, name: str, sources: dict[str, _Source]) -> tuple[str, str]:
    """Where what a module calls `name` is defined; of a module that is named so, the whole."""
    while name != WHOLE:
        source = _read(module, sources)
        statement = source.statements.get(name)
        found = [(from_, what) for local, from_, what in (_own(statement) if statement else []) if local == name]
        if statement is None and source.package and find_spec(f"{module}.{name}"):
            return f"{module}.{name}", WHOLE
        if not found:
            return module, name
        module, name = found[0]
    return module, name


def _write(source: _Source, sources: dict[str, _Source], beside: Iterable[tuple[str, str]]) -> str:
    """The text of a module with what is used of it."""
    tree, lines = ast.parse(source.text), source.text.splitlines()
    kept = [f'"""{ast.get_docstring(tree, clean=False)}"""\n']
    last = 0
    needed = {node.id for name in source.used for node in ast.walk(source.statements[name])
              if isinstance(node, ast.Name)}
    for statement in tree.body[1:]:
        names = _defined(statement)
        if _imports(statement):
            kept += _import(statement, needed, sources)
        elif set(names) & source.used:
            first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
            gap = "\n\n" if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) or last == 0 else ""
            text = "\n".join(lines[first - 1 : statement.end_lineno])
            kept.append(gap + _flattened(statement, text, sources))
            last = statement.end_lineno
    extra = [f"from .{flat(module)} import {name}  # noqa: F401" for module, name in
             (_origin(*entry, sources) for entry in beside)]
    return "\n".join([*kept, *(["", *extra] if extra else [])]) + "\n"


def _import(statement: ast.stmt, needed: set[str], sources: dict[str, _Source]) -> list[str]:
    """The lines of an import: what is used alone, and names of this package from where they are defined."""
    if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
        return [ast.unparse(statement) + "\n"]
    own = {local: (module, name) for local, module, name in _own(statement)}
    if not own:
        statement.names = [a for a in statement.names if (a.asname or a.name.partition(".")[0]) in needed]
        return [ast.unparse(statement)] if statement.names else []
    return [_from(local, *_origin(*own[local], sources)) for local in own if local in needed]


def _from(local: str, module: str, name: str) -> str:
    if name == WHOLE:  # transformers looks for the form of the first line alone
        return f"from .{flat(module)} import __name__ as _copied  # noqa: F401\nfrom . import {flat(module)} as {local}"
    return f"from .{flat(module)} import {name}" + (f" as {local}" if local != name else "")


def _flattened(statement: ast.stmt, text: str, sources: dict[str, _Source]) -> str:
    """The text of a statement; its own imports of this package are from where names are defined."""
    for node in ast.walk(statement):
        if _own(node):
            lines = "; ".join(_from(local, *_origin(module, name, sources)) for local, module, name in _own(node))
            segment = ast.unparse(node)
            if segment not in text:
                raise ValueError(f"line {node.lineno}: expected an import inside of a function on one line")
            text = text.replace(segment, lines.replace("\n", "\n" + " " * node.col_offset))
    return text
