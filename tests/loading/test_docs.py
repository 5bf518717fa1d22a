"""The blocks of docs/plain_pytorch.md run one after another, in a folder with the models that they name."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import seqstruct

pytestmark = pytest.mark.training  # all use trained models

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "plain_pytorch.md").read_text("utf-8"), re.S | re.M)
(SERVER,) = [block for block in BLOCKS if "serve_forever" in block]


@pytest.fixture
def project(tmp_path, translation, language_model, classifier, parser, monkeypatch):
    models = {"mine": translation, "lm": language_model, "sentiment": classifier, "parser": parser}
    for name, model in models.items():
        (tmp_path / "runs" / name).mkdir(parents=True)
        shutil.copy(model.checkpoint, tmp_path / "runs" / name)
    shutil.copytree(translation.data, tmp_path / "data-bin" / "mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_blocks_run(project, capsys):
    names = {"__name__": "example"}
    for block in BLOCKS:
        if block != SERVER:
            exec(compile(block, "plain_pytorch.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "['good'] {'bad': " in printed and "the cat" in printed and "'<top>'" in printed
    assert len(names["translations"]) == len(names["nats"]) == 2 and max(names["nats"]) < 0.0
    assert names["hidden"].shape == (2, 7, 16) and names["more"].shape == (2, 3, 16)


def ask(port, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}", body.encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_server_answers(project, translation):
    assert len(SERVER.strip().splitlines()) <= 25
    (project / "serve.py").write_text(SERVER)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "serve.py", "runs/mine/checkpoint_best.pt", str(port)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.2)
            sentences = translation.sources[:2]
            expected = seqstruct.load(translation.checkpoint).translate(sentences)
            assert ask(port, json.dumps(sentences)) == (200, expected)
            assert ask(port, json.dumps(sentences[0])) == (200, expected[0])
            assert ask(port, json.dumps(["ein Hund", ""])) == (400, "sentence 2 is empty")
            status, answer = ask(port, "no json")
            assert status == 400 and "Expecting value" in answer
            status, answer = ask(port, "[" * 100_000)
            assert status == 400 and "recursion" in answer
            for length, said in (("-1", "Expecting value"), ("x", "invalid literal")):  # and nothing is waited for
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                connection.request("POST", "/", headers={"Content-Length": length})
                answer = connection.getresponse()
                assert answer.status == 400 and said in json.load(answer)
                connection.close()
        finally:
            server.terminate()
