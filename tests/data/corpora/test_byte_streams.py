"""Streams of bytes: enwik8 and images from stand-ins, what fairseq reads of them, and what is refused."""

from __future__ import annotations

import io

import numpy as np
import pytest
from fairseq.data import Dictionary, data_utils
from PIL import Image

from seqstruct.data.corpora.byte_streams import IMAGE, read_images
from seqstruct.data.text.byte_symbols import SYMBOLS
from tests.data.scripts import pack_tar, pack_zip, prepared, refused, run


def stream(folder, split):
    """All bytes of a split, as fairseq's tasks read them."""
    dictionary = Dictionary.load(str(folder / "bin" / "dict.txt"))
    assert dictionary.symbols[4:] == list(SYMBOLS) and len(dictionary) == 260
    data = data_utils.load_indexed_dataset(str(folder / "bin" / split), dictionary)
    return [(row - 4).numpy().astype(np.uint8) for row in data]


def test_enwik8_by_its_script(tmp_path, monkeypatch):
    content = bytes(np.random.default_rng(1).integers(0, 256, 200_013, dtype=np.uint8))
    pack_zip(tmp_path / "raw" / "enwik8.zip", {"enwik8": content})
    done = run("enwik8", "--from", tmp_path / "raw", "--out", tmp_path / "out", "--unchecked")
    assert done.returncode == 0 and "train: 180013 bytes" in done.stdout, done.stderr
    parts = [b"".join(row.tobytes() for row in stream(tmp_path / "out", s)) for s in ("train", "valid", "test")]
    assert list(map(len, parts)) == [180_013, 10_000, 10_000] and b"".join(parts) == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]
    assert "enwik8.zip: SHA-256" in refused("enwik8", "--from", tmp_path / "raw", "--out", tmp_path / "again")
    (tmp_path / "raw" / "enwik8.zip").unlink()
    (tmp_path / "raw" / "enwik8").write_bytes(content)
    with pytest.raises(ValueError, match="enwik8: MD5 .*expected a1fa5ffd"):
        prepared("enwik8", "--from", tmp_path / "raw", "--out", tmp_path / "again")
    (tmp_path / "raw" / "enwik8").write_bytes(content[:19])
    with pytest.raises(ValueError, match="raw/enwik8: expected 20 bytes or more, got 19"):
        prepared("enwik8", "--from", tmp_path / "raw", "--out", tmp_path / "again", "--unchecked")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]


def images(count, seed):
    """count, rows, columns, colours."""
    return np.random.default_rng(seed).integers(0, 256, (count, 64, 64, 3), dtype=np.uint8)


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def write_arrays(folder, pixels):
    folder.mkdir(parents=True, exist_ok=True)
    flat = pixels["train"].transpose(0, 3, 1, 2).reshape(-1, IMAGE)
    np.savez(folder / "train_data_batch_2.npz", data=flat[1:2])
    np.savez(folder / "train_data_batch_1.npz", data=flat[:1])
    np.savez(folder / "train_data_batch_10.npz", data=flat[2:])
    np.savez(folder / "val_data.npz", data=pixels["valid"].transpose(0, 3, 1, 2).reshape(-1, IMAGE))


@pytest.mark.parametrize("form", ["archives", "folders", "arrays"])
def test_images_in_every_form(tmp_path, form):
    pixels = {"train": images(3, 1), "valid": images(2, 2)}
    raw = tmp_path / "raw"
    if form == "arrays":
        write_arrays(raw, pixels)
    for split, of in pixels.items():
        named = {f"{split}_64x64/{i}.png": png(image) for i, image in enumerate(of)}
        if form == "archives":
            pack_tar(raw / f"{split}_64x64.tar", {**named, f"{split}_64x64/readme": "x"})
        elif form == "folders":
            (raw / f"{split}_64x64").mkdir(parents=True)
            for name, content in named.items():
                (raw / name).write_bytes(content)
    summary = prepared("imagenet64", "--from", raw, "--out", tmp_path / "out", "--unchecked")
    assert summary["counts"] == {"train": {"items": 3, "bytes": 3 * IMAGE}, "valid": {"items": 2, "bytes": 2 * IMAGE}}
    for split, of in pixels.items():
        assert np.array_equal(np.stack(stream(tmp_path / "out", split)), of.reshape(len(of), -1))


def test_images_by_their_script(tmp_path):
    write_arrays(tmp_path / "raw", {"train": images(3, 1), "valid": images(2, 2)})
    done = run("imagenet64", "--from", tmp_path / "raw", "--out", tmp_path / "out", "--train-images", 2)
    assert done.returncode == 0, done.stderr
    assert f"train: {2 * IMAGE} bytes\nvalid: {2 * IMAGE} bytes" in done.stdout
    message = "nothing is downloaded, --from DIR is needed: get an account at https://image-net.org"
    assert message in refused("imagenet64", "--out", tmp_path / "again")


def test_wrong_images(tmp_path, refused):
    raw = tmp_path / "raw"
    raw.mkdir()
    words = ["imagenet64", "--from", str(raw), "--out", str(tmp_path / "out")]
    assert "missing: train_64x64.tar, train_64x64/ with .png files, or train_data_batch_1" in refused("prepare", *words)
    pack_tar(raw / "train_64x64.tar", {"x.png": png(np.zeros((32, 64, 3), np.uint8))})
    assert "train_64x64.tar: SHA-256" in refused("prepare", *words)
    with pytest.raises(ValueError, match="train_64x64.tar, x.png: expected 64 x 64 pixels, got 64 x 32"):
        list(read_images(raw, "train"))
    pack_tar(raw / "train_64x64.tar", {"x.png": b"no image"})
    with pytest.raises(ValueError, match="x.png: truncated or altered"):
        list(read_images(raw, "train"))
    (raw / "train_64x64.tar").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="train_64x64.tar: truncated or altered"):
        list(read_images(raw, "train"))
    np.savez(raw / "val_data.npz", data=np.zeros((2, 3), np.uint8))
    with pytest.raises(ValueError, match=r"val_data.npz: expected images of 12288 bytes, got uint8 of shape \(2, 3\)"):
        list(read_images(raw, "valid"))
    np.savez(raw / "val_data.npz", other=np.zeros(2))
    with pytest.raises(ValueError, match="val_data.npz: truncated or altered"):
        list(read_images(raw, "valid"))
    with pytest.raises(ValueError, match="numbers of images: expected 0 or more, got -1 and 0"):
        prepared(*words, "--train-images", -1)
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
