"""The options that all recipes have."""

from __future__ import annotations

import argparse
from pathlib import Path


def options_parser(recipe: str, doc: str = "") -> argparse.ArgumentParser:
    """The options that all recipes have."""
    parser = argparse.ArgumentParser(
        prog=Path(recipe).name, description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", choices=("smoke", "small", "paper"), default="small", help="smoke: seconds; small: "
                        "a laptop, at most 30 minutes a cell on one thread; paper: as published (default: small)")
    parser.add_argument("--row", "--rows", nargs="+", action="extend", metavar="GLOB",
                        help="only rows that match, as in a shell (* and ?)")
    parser.add_argument("--table", metavar="NAME", help="only rows of this table or its stand-in, where a recipe has "
                        "those of several (at the smoke scale, which proves the commands alone, all)")
    parser.add_argument("--seeds", "--seed", type=int, nargs="+", metavar="N", help="these seeds, from 1 on")
    parser.add_argument("--list", action="store_true", help="list the cells and how far they are; run nothing")
    parser.add_argument("--estimate", action="store_true",
                        help="say what the cells take in time, disk and downloads, and the licence; run nothing")
    parser.add_argument("--print", action="store_true", dest="show",
                        help="print the commands of each cell, to be pasted into a shell; run nothing")
    parser.add_argument("--runs", default="runs", metavar="DIR", help="where runs and data are kept (default: runs)")
    parser.add_argument("--records", metavar="DIR", help="where records go (default: records/ beside the recipe; at "
                        "the smoke scale, records/ among the paper's runs)")
    parser.add_argument("--from", dest="source", metavar="DIR", help="take raw data from this folder; download nothing "
                        "(default: the corpus among data/ of SEQSTRUCT_REFERENCE, where that is set)")
    parser.add_argument("--max-minutes", type=_positive, metavar="M", help="wall-clock limit of each training")
    parser.add_argument("--jobs", type=int, choices=range(1, 257), default=1, metavar="N",
                        help="cells run at a time on this machine (default: 1)")
    parser.add_argument("--launcher", choices=("local", "slurm"), default="local",
                        help="slurm: one job for each cell, through submitit (default: local)")
    parser.add_argument("--launcher-option", action="append", default=[], metavar="NAME=VALUE",
                        help="a parameter of submitit's executor, such as partition=gpu; may be repeated")
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected minutes above 0, got {text}")
    return value
