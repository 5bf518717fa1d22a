"""Building the operators' library: `python -m seqstruct.ops.compiled.build` does it in place, as installing does.

Standard library only, and nothing of the package: setup.py runs it where torch may be missing.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import platform
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# torch's stable ABI as of 2.10, so that one library serves all later versions
FLAGS = ("-std=c++17", "-O3", "-fno-math-errno", "-fPIC", "-Wall", "-DTORCH_TARGET_VERSION=0x020a000000000000")
BASELINE: dict[str, tuple[str, ...]] = {"baseline": ()}
# the order is that in which objects are linked: of an inline function that several have, the first stays, which every
# processor can run that runs the others
X86 = {
    **BASELINE,
    "avx2": ("-mavx2", "-mfma"),
    "avx512": ("-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"),
}
COMMAND = "python -m seqstruct.ops.compiled.build"


def sources() -> list[Path]:
    """All that the library is made of, library.cpp first."""
    return sorted([*FOLDER.glob("*.cpp"), *FOLDER.glob("*.h")], key=lambda path: (path.stem != "library", path.name))


def library_path(folder: Path = FOLDER) -> Path:
    """Where the library lies in a folder: its version changes with the sources, so that no old one is taken for new.

    A name that ended with .so would be taken for a module.
    """
    digest = hashlib.sha256()
    for path in [Path(__file__), *sources()]:
        digest.update(path.read_bytes())
    return folder / f"libseqstruct.so.{digest.hexdigest()[:12]}"


def build(folder: Path = FOLDER) -> Path:
    """Compile into a folder, and remove older libraries there once the new one is in place.

    CXX may name the compiler, CXXFLAGS more options.
    Raises ValueError if torch or the compiler are missing, or if the compiler fails.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ValueError("torch is not installed where seqstruct's operators are to be built")
    torch = Path(spec.origin).parent
    compiler = [*shlex.split(os.environ.get("CXX") or "c++"), *FLAGS, *shlex.split(os.environ.get("CXXFLAGS", ""))]
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    path = library_path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as beside, ThreadPoolExecutor(os.cpu_count()) as pool:
        commands, objects = [], []
        for level, options in (X86 if x86 else BASELINE).items():
            for source in sources():
                if source.suffix == ".cpp" and (source.stem != "library" or level == "baseline"):
                    objects.append(f"{beside}/{source.stem}-{level}.o")
                    defined = [f"-DLEVEL={level}", *(["-DLEVELS"] if x86 else [])]
                    commands.append([*compiler, *options, *defined, f"-I{torch / 'include'}", "-c", str(source),
                                     "-o", objects[-1]])
        list(pool.map(_run, commands))
        result = Path(beside, path.name)
        _run([*compiler, "-shared", *objects, f"-L{torch / 'lib'}", "-ltorch_cpu", "-o", str(result)])
        result.replace(path)
        for old in folder.glob("libseqstruct.so.*"):
            if old != path:
                old.unlink(missing_ok=True)  # another build may have been here
    return path


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ValueError(f"seqstruct's operators need a C++ compiler, which CXX may name: {error}") from None
    if done.returncode:
        raise ValueError(f"{command[0]} failed: {done.stderr.strip()[-2000:]}")


def main() -> int:
    """Build in place; 1 if that fails."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Build seqstruct's operators in place, with this torch.")
    parser.parse_args()
    try:
        print(f"built {build()}")
    except (ValueError, OSError) as error:
        print(f"seqstruct: {error}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
