"""Packaging of seqstruct; the version is read from seqstruct/__init__.py without importing it."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
VERSION = re.search(r'^__version__ = "(.+)"$', (HERE / "seqstruct" / "__init__.py").read_text("utf-8"), re.M).group(1)

setup(
    name="seqstruct",
    version=VERSION,
    description="Structured and efficient attention for sequence models, as a fairseq plugin",
    long_description=(HERE / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.10,<3.14",
    packages=find_packages(include=["seqstruct", "seqstruct.*"]),
    package_data={"seqstruct.ops.compiled": ["*.cpp", "*.h"]},
    install_requires=[
        "torch",
        "fairseq-fixed==0.12.3.1",
        "sacrebleu",
        "sentencepiece",
        "subword-nmt",
        "hydra-core",
        "tensorboard",
        "sacremoses",
        "matplotlib",
        "numpy",
        "scipy",
        "tqdm",
        "rich",
    ],
    extras_require={
        "test": ["pytest", "pytest-xdist", "ruff"],
        "slurm": ["hydra-submitit-launcher"],
    },
    entry_points={"console_scripts": ["seqstruct = seqstruct.cli:main"]},
)
