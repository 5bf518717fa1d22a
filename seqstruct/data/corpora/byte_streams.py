"""Streams of bytes for language modeling, as the Reformer reads them (Kitaev et al. 2020, section 5).

    enwik8      the first 100,000,000 bytes of Wikipedia's XML of 2006: 90, 5 and 5 million to train, validate and test
    imagenet64  downsampled ImageNet (van den Oord et al. 2016), 64 x 64 pixels: red, green and blue of each pixel, row
                by row, 12,288 bytes an image; its validation set validates, and there is no other

The folder holds bin/ for fairseq's task language_modeling (--sample-break-mode none) or stream_language_modeling; a
token is a byte (`byte_symbols`), with no end of sentence in between.  Cross entropy in bits (fairseq's loss, base 2) is
so in bits per byte, or per dimension of an image.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from seqstruct.data.downloads import DAMAGE, Remote, collect, members, raw_folder
from seqstruct.data.files import new_folder, sha256, undamaged, verify, write_json, write_text
from seqstruct.data.text.binarise import write_items
from seqstruct.data.text.byte_symbols import SPECIAL, SYMBOLS

ENWIK8_SHA256 = "547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc"  # of the archive
ENWIK8 = Remote("http://mattmahoney.net/dc/enwik8.zip", ENWIK8_SHA256,
                mirrors=(Remote("https://data.deepai.org/enwik8.zip", ENWIK8_SHA256),))
ENWIK8_MD5 = "a1fa5ffddb56f4953e226637dabbb36a"
MANUAL = "enwik8 is described at http://mattmahoney.net/dc/textdata.html; name its folder by --from"
MANUAL_IMAGES = (
    "get an account at https://image-net.org, accept its terms, and take train_64x64.tar and valid_64x64.tar, or the "
    "arrays train_data_batch_N.npz and val_data.npz"
)
SIDE = 64
IMAGE = SIDE * SIDE * 3
ITEM = 1 << 16  # bytes of a text in one entry of the indexed data set
IMAGES_SHA256 = {
    "train_64x64.tar": "e2a2c1947a748d0d256e98e6d82800d855441dc9e4de2e71a773f1324c4524d7",
    "valid_64x64.tar": "eeac03ec4f585baf871d2b4cb9c974bfe345e74878a74e5820fe6eb1041629cd",
}


def write_stream(prefix: Path, items: Iterable[np.ndarray]) -> dict[str, int]:
    """prefix.bin and prefix.idx of entries of bytes (uint8); their number and that of all bytes.

    Raises ValueError if there is none.
    """
    import torch

    prefix.parent.mkdir(parents=True, exist_ok=True)
    counts = {"items": 0, "bytes": 0}

    def numbers() -> Iterator[torch.Tensor]:
        for item in items:
            counts["bytes"] += item.size
            yield torch.from_numpy(item.astype(np.int32) + SPECIAL)

    counts["items"] = write_items(numbers(), prefix, len(SYMBOLS) + SPECIAL)
    if not counts["bytes"]:
        raise ValueError(f"{prefix.name}: the set is empty")
    return counts


def text_splits(path: Path) -> dict[str, Iterator[np.ndarray]]:
    """18 of 20 parts of a file, then one and one: of enwik8 90, 5 and 5 million bytes.

    Raises ValueError if a part would be empty.
    """
    if path.stat().st_size < 20:
        raise ValueError(f"{path}: expected 20 bytes or more, got {path.stat().st_size}")
    content = np.memmap(path, dtype=np.uint8, mode="r")
    part = len(content) // 20
    bounds = {"train": (0, len(content) - 2 * part), "valid": (len(content) - 2 * part, len(content) - part),
              "test": (len(content) - part, len(content))}

    def items(start: int, end: int) -> Iterator[np.ndarray]:
        return (np.array(content[i : min(i + ITEM, end)]) for i in range(start, end, ITEM))

    return {split: items(*bound) for split, bound in bounds.items()}


def read_images(folder: Path, split: str) -> Iterator[np.ndarray]:
    """The images of train or valid as 12,288 bytes each, row by row, red, green and blue side by side.

    They are .png files of SPLIT_64x64.tar or of the folder SPLIT_64x64; or arrays `data` of train_data_batch_N.npz and
    val_data.npz, which have all red before all green before all blue.
    Raises ValueError if there is none of these, or if one is damaged or of another size, naming it.
    """
    archive, loose = folder / f"{split}_64x64.tar", folder / f"{split}_64x64"
    arrays = sorted(folder.glob("train_data_batch_*.npz" if split == "train" else "val_data.npz"),
                    key=lambda path: (len(path.name), path.name))
    if archive.is_file():
        with undamaged(archive, *DAMAGE):
            for name, opened in members(archive):
                if name.endswith(".png"):
                    yield _decode(f"{archive}, {name}", opened())
    elif loose.is_dir():
        for path in sorted(loose.glob("*.png")):
            with open(path, "rb") as stream:
                yield _decode(str(path), stream)
    elif arrays:
        for path in arrays:
            yield from _images_of_arrays(path)
    else:
        raise ValueError(f"{folder}: missing: {archive.name}, {loose.name}/ with .png files, or "
                         f"{'train_data_batch_1.npz ...' if split == 'train' else 'val_data.npz'}")


def _images_of_arrays(path: Path) -> Iterator[np.ndarray]:
    with undamaged(path, ValueError, KeyError, OSError, *DAMAGE), np.load(path, allow_pickle=False) as opened:
        data = opened["data"]
    if data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != IMAGE:
        raise ValueError(f"{path}: expected images of {IMAGE} bytes, got {data.dtype} of shape {data.shape}")
    yield from data.reshape(-1, 3, SIDE * SIDE).transpose(0, 2, 1).reshape(-1, IMAGE)


def _decode(name: str, stream) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    with undamaged(name, UnidentifiedImageError, OSError, SyntaxError), Image.open(stream) as image:
        pixels = np.asarray(image.convert("RGB"))
    if pixels.shape != (SIDE, SIDE, 3):
        raise ValueError(f"{name}: expected {SIDE} x {SIDE} pixels, got {pixels.shape[1]} x {pixels.shape[0]}")
    return pixels.reshape(-1)


def read_splits(args: argparse.Namespace, scratch: Path) -> dict[str, Iterator[np.ndarray]]:
    """The entries of each split.  scratch: for what is unpacked.  Raises ValueError on what is missing or altered."""
    if args.entry == "enwik8":
        path = collect(raw_folder(args, [ENWIK8], MANUAL), {"enwik8": ["enwik8"]}, scratch, MANUAL)["enwik8"]
        if not args.unchecked:
            verify(path, ENWIK8_MD5)
        return text_splits(path)
    most = {"train": args.train_images, "valid": args.valid_images}
    if min(most.values()) < 0:
        raise ValueError(f"numbers of images: expected 0 or more, got {' and '.join(map(str, most.values()))}")
    raw = raw_folder(args, manual=MANUAL_IMAGES)
    for name, digest in () if args.unchecked else IMAGES_SHA256.items():
        if (raw / name).is_file():
            verify(raw / name, digest)
    return {split: islice(read_images(raw, split), count or None) for split, count in most.items()}


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    for split in ("train", "valid") if name == "imagenet64" else ():
        parser.add_argument(f"--{split}-images", type=int, default=0, metavar="N",
                            help=f"the first N images of the {split} set alone, 0: all (default 0)")


def run(args: argparse.Namespace) -> None:
    with new_folder(args.out) as folder:
        splits = read_splits(args, folder.parent / "unpacked")
        write_text(folder / "bin" / "dict.txt", (f"{symbol} 1" for symbol in SYMBOLS))
        counts = {split: write_stream(folder / "bin" / split, items) for split, items in splits.items()}
        sums = {f"{split}.bin": sha256(folder / "bin" / f"{split}.bin") for split in splits}
        write_json(folder / "corpus.json", {"corpus": args.entry, "counts": counts, "sha256": sums})
    for split, found in counts.items():
        print(f"{split}: {found['bytes']} bytes")
