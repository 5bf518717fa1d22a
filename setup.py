"""Packaging of seqstruct; the version is read from seqstruct/__init__.py without importing it."""

import importlib.util
import os
import re
import shutil
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

HERE = Path(__file__).resolve().parent
VERSION = re.search(r'^__version__ = "(.+)"$', (HERE / "seqstruct" / "__init__.py").read_text("utf-8"), re.M).group(1)
# What the commands read beside the code.  A wheel has it in seqstruct/_share, a checkout where it lies.
SHARED = ("configs/**/*.yaml", "recipes/*/paper.json", "recipes/*/records/*.jsonl")


class BuildWithShared(build_py):
    """Modules and package data, and the files of SHARED below seqstruct/_share."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        share = Path(self.build_lib, "seqstruct", "_share")
        shutil.rmtree(share, ignore_errors=True)
        for source in sorted(path for pattern in SHARED for path in HERE.glob(pattern)):
            target = share / source.relative_to(HERE)
            self.mkpath(str(target.parent))
            self.copy_file(str(source), str(target))


spec = importlib.util.spec_from_file_location("build", HERE / "seqstruct" / "ops" / "compiled" / "build.py")
operators = importlib.util.module_from_spec(spec)
spec.loader.exec_module(operators)


class BuildOperators(build_ext):
    """The library of operators in the place of an extension module; torch has to be there, so without isolation.

    What was built in place before is copied.
    """

    def build_extension(self, ext):
        target, ready = Path(self.get_ext_fullpath(ext.name)).parent, operators.library_path()
        if ready.exists():
            self.mkpath(str(target))
            self.copy_file(str(ready), str(target))
            return
        try:
            operators.build(target)
        except ValueError as error:
            raise CompileError(f"{error}; PyTorch's operators will serve") from None

    def get_ext_filename(self, fullname):
        return os.path.join(*fullname.split(".")[:-1], operators.library_path().name)


setup(
    name="seqstruct",
    version=VERSION,
    description="Structured and efficient attention for sequence models, as a fairseq plugin",
    long_description=(HERE / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    author="seqstruct contributors",
    license="MIT",
    keywords="attention, fairseq, sequence models, machine translation, structured prediction, pushdown automata",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: C++",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
    ],
    python_requires=">=3.10,<3.14",
    packages=find_packages(include=["seqstruct", "seqstruct.*"]),
    package_data={"seqstruct.harness": ["page.html"], "seqstruct.ops.compiled": ["*.cpp", "*.h"]},
    ext_modules=[Extension("seqstruct.ops.compiled.kernels", sources=[], optional=True)],
    cmdclass={"build_py": BuildWithShared, "build_ext": BuildOperators},
    # the least version of each is the oldest line that was tried: that of constraints.txt
    install_requires=[
        "torch>=2.13",
        "fairseq-fixed==0.12.3.1",
        "hydra-core>=1.3",
        "omegaconf>=2.3",
        "PyYAML>=6.0",
        "numpy>=2.2",
        "scipy>=1.15",
        "sacrebleu>=2.6",
        "pooch>=1.9",
        "requests>=2.34",
        "sacremoses>=0.2",
        "sentencepiece>=0.2",
        "protobuf>=7.36",
        "subword-nmt>=0.3",
        "pillow>=12.3",
        "matplotlib>=3.10",
        "rich>=15.0",
        "tqdm>=4.70",
        # fairseq's own: --tensorboard-logdir; without tensorboardX it asks for it whenever a command starts
        "tensorboard>=2.21",
        "tensorboardX>=2.6",
    ],
    extras_require={
        "hf": ["transformers>=5.23", "huggingface-hub>=2.4", "safetensors>=0.8"],
        "test": [
            "pytest>=9.2", "pytest-xdist>=3.8", "ruff>=0.17", "selenium>=4.51",
            "nbclient>=0.11", "nbformat>=5.11", "ipykernel>=7.4",
            "transformers>=5.23", "huggingface-hub>=2.4", "safetensors>=0.8", "accelerate>=1.15",
        ],
        "docs": [
            "mkdocs-material>=9.7", "mkdocstrings-python>=2.0",
            "nbclient>=0.11", "nbformat>=5.11", "ipykernel>=7.4",
        ],
        # what `seqstruct bench` times beside ours, as far as PyPI has it; the last is what the authors' stacks import
        "bench": ["torch-struct==0.5", "supar==1.1.4", "transformers>=5.23", "torch-semiring-einsum==1.2.0"],
        "gpu": ["triton>=3.7"],  # that of PyTorch for CUDA
        "slurm": ["submitit>=1.5"],
        "align": ["systran-align>=3.5; python_version < '3.12'"],  # there are no wheels for later ones
        "vectors": ["gensim>=4.4"],
        "statistics": ["morfessor>=2.0", "pyphen>=0.18"],
    },
    entry_points={"console_scripts": ["seqstruct = seqstruct.cli:main"]},
)
