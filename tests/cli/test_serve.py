from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from commands import Call, start


def first_line(process: subprocess.Popen[bytes], pattern: str) -> str:
    """The first part of stderr that matches."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(pattern, line.decode()):
            return found[1]
    raise AssertionError("the service ended")


def ask(address: str, path: str) -> Any:
    """An answer as JSON, without any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address + path, timeout=60) as reply:
        return json.load(reply)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_serve_answers_and_ends_in_order(
    model: Path, xpos_model: Path, treebank_file: Path, number: int, code: int
) -> None:
    """The address is told when it works; a signal ends it with the code that commands have."""
    process = start("serve", model, xpos_model, "--data", treebank_file, "--split", "test", "--port", "0")
    try:
        address = first_line(process, r"(http://127\.0\.0\.1:\d+/)  ")
        assert ask(address, "health")["status"] == "ok"
        assert ask(address, "api/v1/models")["data"] == "invented.conllu"
        assert ask(address, "api/v1/errors")["token_error"]["n"] > 0
        process.send_signal(number)
        assert process.wait(30) == code
        assert process.stderr is not None
        said = process.stderr.read()
        assert said.endswith(b"Stopped.\n")
        assert b"Traceback" not in said
        assert b"Interrupted" not in said
    finally:
        process.kill()
        process.communicate()


def test_a_token_is_made_and_told(model: Path) -> None:
    """`--token auto` prints an address that opens the page."""
    process = start("serve", model, "--token", "auto", "--port", "0")
    try:
        address = first_line(process, r"(http://127\.0\.0\.1:\d+/)#token=[\w-]{20,}  ")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(address, "api/v1/models")
    finally:
        process.terminate()
        process.communicate()


def test_a_token_that_no_header_carries_is_refused(call: Call, model: Path) -> None:
    """Exit code 2 and what to do; the secret itself is not repeated."""
    for token in ("geheimnisß", "two words", "", "தமிழ்"):
        said = call("serve", model, "--token", token, "--port", 0, code=2).stderr
        assert "`--token auto` makes one" in said
        assert not token or token not in said


def test_other_machines_are_warned_of(model: Path) -> None:
    """Without a token anyone there can ask."""
    process = start("serve", model, "--host", "0.0.0.0", "--port", "0")
    try:
        assert "--token auto" in first_line(process, r"(Warning: 0\.0\.0\.0 .*)")
    finally:
        process.terminate()
        process.communicate()


def test_wrong_calls_say_what_to_do(call: Call, model: Path, tmp_path: Path) -> None:
    """Exit code 2 and one sentence."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "Choose another with --port" in call("serve", model, "--port", port, code=2).stderr
    pool = tmp_path / "pool.txt"
    pool.write_text("a b\n", encoding="utf-8")
    assert "pass both" in call("serve", model, "--pool", pool, "--port", 0, code=2).stderr
    assert "belongs to --pool" in call("serve", model, "--train", pool, "--port", 0, code=2).stderr
    said = call("serve", model, "--pool", pool, "--answers", pool, "--port", 0, code=2).stderr
    assert "is also the pool" in said
    mine = shutil.copy(model, tmp_path / "mine.vcrf")
    said = call("serve", mine, "--pool", pool, "--answers", tmp_path / "mine.conllu", "--port", 0, code=2).stderr
    assert "mine.vcrf is also a model, which would be overwritten" in said


def test_the_page_is_opened_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the browser of the system, at the address that is told."""
    from vcrf.cli.serve import _tell

    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    _tell("http://127.0.0.1:1/", False)
    assert opened == []
    _tell("http://127.0.0.1:1/", True)
    assert opened == ["http://127.0.0.1:1/"]


def test_without_the_extra_it_is_named(call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to install."""
    monkeypatch.setattr("vcrf.web.server.find_spec", lambda _: None)
    assert "pip install '.[web]'" in call("serve", model, code=2).stderr
    assert "'.[web]'" in call("train", model, "-o", model.parent / "x.vcrf", "--watch", code=2).stderr


def test_training_is_watched(treebank_file: Path, tmp_path: Path) -> None:
    """The page's data grow while training runs; what is written is the same as without."""
    options = ("--split", "train", "--recipe", "paper", "--base-strength", "0.02")
    process = start("train", treebank_file, *options, "--watch", "--watch-port", "0", "-o", tmp_path / "w.vcrf")
    try:
        address = first_line(process, r"Watch the training at (http://127\.0\.0\.1:\d+/)")
        view = ask(address, "api/v1/history")
        while view["is_running"]:
            time.sleep(0.05)
            view = ask(address, "api/v1/history")
        assert view["records"][-1]["relative_gap"] <= view["tol"]
        assert view["status"]
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
    Call()("train", treebank_file, *options, "-o", tmp_path / "p.vcrf")
    from vcrf import load

    watched, plain = load(tmp_path / "w.vcrf").model_, load(tmp_path / "p.vcrf").model_
    assert watched.weights.tobytes() == plain.weights.tobytes()


def test_answers_survive_a_kill(model: Path, tmp_path: Path) -> None:
    """What was answered is in the file when the service is killed, and the next service goes on, retrained or not."""
    pool, answers = tmp_path / "pool.txt", tmp_path / "answers.conllu"
    pool.write_text("dinkliro lomira\nlomira dinkliro kasu\n", encoding="utf-8")
    for n_before in (0, 1):
        process = start("serve", model, "--pool", pool, "--answers", answers, "--port", "0")
        try:
            address = first_line(process, r"(http://127\.0\.0\.1:\d+/)  ")
            view = ask(address, "api/v1/label")
            assert (view["n_answers"], view["n_left"]) == (n_before, 2 - n_before)
            assert ("retrained" in ask(address, "models")["models"]) == bool(n_before)
            task = view["tasks"][0]
            body = json.dumps({"tokens": task["tokens"], "labels": task["labels"]}).encode()
            post = urllib.request.Request(address + "api/v1/label/answers", body, {"Content-Type": "application/json"})
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(post, timeout=60).close()
        finally:
            process.kill()
            process.communicate()
        shutil.copy(model, tmp_path / "answers.vcrf")  # as if it had been retrained
    assert answers.read_text("utf-8").count("# source = pool.txt:") == 2
