"""What setup.py requires, read from its text."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def keyword(name):
    """A literal argument of setup()."""
    calls = [node for node in ast.walk(ast.parse((ROOT / "setup.py").read_text("utf-8"))) if isinstance(node, ast.Call)]
    setup = next(call for call in calls if getattr(call.func, "id", None) == "setup")
    return next(ast.literal_eval(k.value) for k in setup.keywords if k.arg == name)


def parse(requirements):
    """{name: (relation, version)} of requirements such as "torch>=2.13"; names as written."""
    return {name: (relation, version) for name, relation, version in
            (re.fullmatch(r"([\w-]+)(==|>=)([\d.]+)(?:; .*)?", line).groups() for line in requirements)}


REQUIRED = parse(keyword("install_requires"))
EXTRAS = {extra: parse(lines) for extra, lines in keyword("extras_require").items()}
EVERYTHING = {name: wanted for part in (REQUIRED, *EXTRAS.values()) for name, wanted in part.items()}
