"""Downloads from a server on this machine: resumed, checked, recorded; and files taken out of archives."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import http.server
import io
import os
import tarfile
import threading
import zipfile
from email.utils import parsedate_to_datetime

import pytest

from seqstruct.data.downloads import BLOCK, SUMS, Remote, collect, download, fetch, raw_folder
from tests.data.scripts import pack_zip, refused

CONTENT = bytes(range(256)) * 300


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `files`; paths that begin with /whole ignore ranges, those with /breaks stop half way at first, those
    with /waits until they are told to go on."""

    def do_GET(self):
        served = self.server
        name = self.path.rsplit("/", 1)[-1]
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        served.requests.append((self.path, start))
        content = served.files.get(name)
        if content is None:
            self.send_error(404)
            return
        since = self.headers.get("If-Unmodified-Since")
        if since and served.changed > parsedate_to_datetime(since).timestamp():
            self.send_error(412)
            return
        if start and not self.path.startswith("/whole"):
            if start >= len(content):
                self.send_error(416)
                return
            content = content[start:]
            self.send_response(206)
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.path.startswith("/breaks") and len(served.requests) == 1:
            content = content[: len(content) // 2]
        if self.path.startswith("/waits"):
            half = len(content) // 2
            self.wfile.write(content[:half])
            served.begun.release()
            assert served.go_on.wait(60)
            content = content[half:]
        self.wfile.write(content)

    def log_message(self, *_):
        """Nothing on standard error."""


@pytest.fixture
def server():
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.files, served.requests, served.changed = {"a.bin": CONTENT}, [], 1e9
    served.begun, served.go_on = threading.Semaphore(0), threading.Event()
    served.address = f"http://127.0.0.1:{served.server_address[1]}"
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


@pytest.mark.parametrize(("place", "start"), [("parts", 700), ("whole", 0)])
def test_a_partial_file_is_completed(server, tmp_path, place, start):
    (tmp_path / "a.bin.part").write_bytes(CONTENT[:700])
    download(f"{server.address}/{place}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT and server.requests == [(f"/{place}/a.bin", 700)]
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"], start


def test_a_broken_transfer_goes_on_where_it_stopped(server, tmp_path):
    download(f"{server.address}/breaks/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert [start for _, start in server.requests] == [0, len(CONTENT) // 2 // BLOCK * BLOCK]


def test_a_part_of_another_version_is_dropped(server, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(CONTENT + b"more")
    download(f"{server.address}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    part = tmp_path / "b.bin.part"
    part.write_bytes(b"half of what was there before")
    os.utime(part, (0.9e9, 0.9e9))
    server.files["b.bin"] = CONTENT
    download(f"{server.address}/b.bin", tmp_path / "b.bin")
    assert (tmp_path / "b.bin").read_bytes() == CONTENT


def test_what_cannot_be_had_is_one_sentence_and_the_part_stays(server, tmp_path):
    (tmp_path / "b.bin.part").write_bytes(b"half")
    with pytest.raises(ValueError, match=r"/b.bin could not be downloaded: .*404.*; write to the authors"):
        fetch([Remote(f"{server.address}/b.bin")], tmp_path, "write to the authors")
    assert [path.name for path in tmp_path.iterdir()] == ["b.bin.part"]
    server.shutdown()
    server.server_close()
    with pytest.raises(ValueError, match="could not be downloaded: .*refused"):
        download(f"{server.address}/a.bin", tmp_path / "a.bin")


def test_a_second_call_waits_for_the_first_and_takes_what_is_there(server, tmp_path):
    calls = [threading.Thread(target=fetch, args=([Remote(f"{server.address}/waits/a.bin")], tmp_path)) for _ in "ab"]
    calls[0].start()
    assert server.begun.acquire(timeout=60)
    calls[1].start()
    server.begun.acquire(timeout=0.5)  # in vain: there is no second request
    server.go_on.set()
    for call in calls:
        call.join()
    assert (tmp_path / "a.bin").read_bytes() == CONTENT and server.requests == [("/waits/a.bin", 0)]
    assert (tmp_path / SUMS).read_text() == f"{hashlib.sha256(CONTENT).hexdigest()}  a.bin\n"


def test_mirrors_checksums_and_their_record(server, tmp_path):
    digest = hashlib.sha256(CONTENT).hexdigest()
    mirror = Remote(f"{server.address}/a.bin", digest)
    remote = Remote(f"{server.address}/gone/b.bin", "0" * 64, mirrors=(mirror,))
    (tmp_path / "raw").symlink_to(tmp_path / "disk")
    fetch([remote], tmp_path / "raw")
    assert (tmp_path / "raw" / SUMS).read_text() == f"{digest}  a.bin\n"
    fetch([remote], tmp_path / "raw")
    assert len(server.requests) == 2, "what is there is not downloaded again"
    (tmp_path / "raw" / "a.bin").write_bytes(b"altered")
    with pytest.raises(ValueError, match="a.bin: SHA-256 .*truncated or altered"):
        fetch([remote], tmp_path / "raw")
    with pytest.raises(ValueError, match=r"MD5 hash of downloaded file \(a.bin\) does not match .* expected md5:0{32}"):
        fetch([Remote(f"{server.address}/a.bin", "0" * 32)], tmp_path / "other")
    assert not list((tmp_path / "other").iterdir()), "an altered download is removed"


def test_a_mirror_does_not_go_on_from_what_another_address_gave(server, tmp_path):
    mirror = Remote(f"{server.address}/a.bin")
    remote = Remote(f"{server.address}/gone.bin", name="a.bin", mirrors=(mirror,))
    (tmp_path / "a.bin.part").write_bytes(b"half of what gone.bin was")
    fetch([remote], tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert sorted(path.name for path in tmp_path.iterdir()) == [SUMS, "a.bin"]
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "a.bin.1.part").write_bytes(CONTENT[:700])
    fetch([remote], tmp_path / "again")
    assert (tmp_path / "again" / "a.bin").read_bytes() == CONTENT and server.requests[-1] == ("/a.bin", 700)


def test_files_without_a_published_checksum_must_stay_as_they_came(server, tmp_path):
    remote = Remote(f"{server.address}/download?name=a.bin", name="b.bin")
    server.files["download?name=a.bin"] = CONTENT
    fetch([remote], tmp_path)
    fetch([remote], tmp_path)
    (tmp_path / "b.bin").write_bytes(CONTENT[:-1])
    with pytest.raises(ValueError, match="b.bin: SHA-256 .*truncated or altered"):
        fetch([remote], tmp_path)
    (tmp_path / SUMS).write_text("what\n")
    with pytest.raises(ValueError, match="line 1: expected a SHA-256 and a file name"):
        fetch([remote], tmp_path)


def test_a_download_that_is_not_what_is_written_down_is_removed_and_a_mirror_tried(server, tmp_path):
    mirror = Remote(f"{server.address}/a.bin")
    remote = Remote(f"{server.address}/other.bin", name="a.bin", mirrors=(mirror,))
    server.files["other.bin"] = b"of another day"
    (tmp_path / SUMS).write_text(f"{hashlib.sha256(CONTENT).hexdigest()}  a.bin\n")
    with pytest.raises(ValueError, match="does not match"):
        fetch([Remote(remote.address, name="a.bin")], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [SUMS]
    fetch([remote], tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_given_folder_is_never_added_to(tmp_path):
    remote = Remote("http://127.0.0.1:9/a.bin", "0" * 64)
    args = argparse.Namespace(source=tmp_path, downloads=tmp_path / "downloads", unchecked=False)
    assert raw_folder(args, [remote]) == tmp_path and not list(tmp_path.iterdir())
    (tmp_path / "a.bin").write_bytes(CONTENT)
    with pytest.raises(ValueError, match="a.bin: SHA-256"):
        raw_folder(args, [remote])
    assert raw_folder(argparse.Namespace(**{**vars(args), "unchecked": True}), [remote]) == tmp_path
    with pytest.raises(ValueError, match="absent is not a folder"):
        raw_folder(argparse.Namespace(**{**vars(args), "source": tmp_path / "absent"}), [remote])


def add(archive, name, content):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def test_files_are_found_in_folders_and_archives(tmp_path):
    raw = tmp_path / "raw"
    (raw / "deep").mkdir(parents=True)
    (raw / "deep" / "one.de").write_bytes(b"1")
    (raw / "two.en.gz").write_bytes(gzip.compress(b"2"))
    with tarfile.open(raw / "three.tgz", "w:gz") as archive:
        add(archive, "x/../../one.de", b"not this")
        add(archive, "../../../three.de", b"3")
        link = tarfile.TarInfo("four.de")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with zipfile.ZipFile(raw / "four.zip", "w") as archive:
        archive.writestr("y/four.b.gz", gzip.compress(b"4"))
    wanted = {"1": ["one.de"], "2": ["two.en"], "3": ["other.de", "three.de"], "4": ["four.de", "four.b"]}
    found = collect(raw, wanted, tmp_path / "scratch")
    assert found["1"] == raw / "deep" / "one.de" and found["2"] == raw / "two.en.gz"
    assert found["3"].read_bytes() == b"3" and gzip.decompress(found["4"].read_bytes()) == b"4"
    inside = tmp_path / "scratch"
    assert all(inside in found[key].resolve().parents for key in "34")
    with pytest.raises(ValueError, match=r"raw: missing, as files or in archives: a or b, c; ask$"):
        collect(raw, {"x": ["a", "b"], "y": ["c"], "1": ["one.de"]}, tmp_path / "again", "ask")


def test_members_of_one_name_in_two_folders_are_told_apart(tmp_path):
    pack_zip(tmp_path / "raw" / "all.zip", {"x/orig/a.de": b"text", "x/tok/a.de": b"words", "x/tok/b.de": b"more"})
    found = collect(tmp_path / "raw", {"b": ["b.de"], "1": ["orig/a.de"], "2": ["tok/a.de"]}, tmp_path / "scratch")
    assert {key: path.read_bytes() for key, path in found.items()} == {"b": b"more", "1": b"text", "2": b"words"}


def test_a_prepared_folder_among_raw_files_is_not_taken_for_them(tmp_path):
    for place in ("a/text", "raw", "z/text"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "train.en").write_text(place)
    assert collect(tmp_path, {"en": ["train.en"]}, tmp_path / "scratch")["en"] == tmp_path / "raw" / "train.en"


@pytest.mark.parametrize(("place", "value"), [(6, 1), (8, 99)], ids=["encrypted", "packed otherwise"])
def test_zip_archives_that_python_cannot_unpack_are_named(tmp_path, place, value):
    path = tmp_path / "raw" / "a.zip"
    pack_zip(path, {"a": "text"})
    data = bytearray(path.read_bytes())
    data[place] = data[data.index(b"PK\x01\x02") + place + 2] = value  # of the member's header and of the directory
    path.write_bytes(data)
    with pytest.raises(ValueError, match="a.zip: truncated or altered: .*(encrypted|compression method)"):
        collect(tmp_path / "raw", {"a": ["a"]}, tmp_path / "scratch")


@pytest.mark.parametrize("name", ["three.tgz", "four.zip"])
def test_damaged_archives_are_named(tmp_path, name):
    path = tmp_path / "raw" / name
    path.parent.mkdir()
    content = hashlib.shake_256(b"x").digest(30000)
    if name.endswith("zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a", content)
    else:
        with tarfile.open(path, "w:gz") as archive:
            add(archive, "a", content)
    path.write_bytes(path.read_bytes()[:20000])
    with pytest.raises(ValueError, match=f"{name}: truncated or altered"):
        collect(tmp_path / "raw", {"a": ["a"]}, tmp_path / "scratch")


@pytest.mark.parametrize(("script", "options", "name"), [
    ("multi30k", [], "train.de.gz"), ("babi", ["--task", 2], "babi.tar.gz"), ("snli", ["--no-vectors"], "snli_1.0.zip"),
])
def test_scripts_keep_what_has_been_downloaded(tmp_path, script, options, name):
    """The first file is there in part, and the way to the network is closed."""
    kept = tmp_path / "out.downloads"
    kept.mkdir()
    (kept / f"{name}.part").write_bytes(b"half")
    assert f"{name} could not be downloaded" in refused(script, *options, "--out", tmp_path / "out") or script == "babi"
    assert [path.name for path in tmp_path.rglob("*")] == ["out.downloads", f"{name}.part"]
