from __future__ import annotations

import json
import logging
import math
import random
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from commands import Call
from vcrf import load
from vcrf.data import Corpus
from vcrf.web.limits import Limits

from .conftest import opened

SENTENCE = ["a", "b", "c"]


def words(corpus: Corpus, n: int = 1) -> list[list[str]]:
    """The first sentences."""
    return corpus.tokens[:n]


# ---- UDPipe's interface ----


def udpipe(client: Any, data: str, **options: str) -> str:
    """A client as UDPipe's documentation describes it: a form to /process, the field result of the answer."""
    reply = client.post("/process", data={"tagger": "", "data": data, **options})
    assert reply.status_code == 200, reply.text
    result: str = reply.json()["result"]
    return result


@pytest.mark.parametrize("marginals", [False, True])
def test_udpipe_gives_what_tag_prints(client: Any, good: Path, treebank: Path, marginals: bool) -> None:
    """CoNLL-U comes back byte for byte as `vcrf tag` writes it."""
    printed = Call()("tag", good, treebank, *(["--marginals"] if marginals else [])).stdout_bytes
    options = {"marginals": ""} if marginals else {}
    assert udpipe(client, treebank.read_text("utf-8"), **options).encode() == printed


def test_udpipe_reads_lines_of_tokens(client: Any, good: Path, corpus: Corpus, tmp_path: Path) -> None:
    """Horizontal is a sentence a line, as text is for `vcrf tag`; vertical has the same answer."""
    text = "".join(" ".join(tokens) + "\n" for tokens in words(corpus, 5))
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    printed = Call()("tag", good, tmp_path / "text.txt").stdout
    assert udpipe(client, text, input="horizontal") == printed
    lines = "".join("\n".join(tokens) + "\n\n" for tokens in words(corpus, 5))
    assert udpipe(client, lines, input="vertical") == printed


def test_udpipe_get_and_multipart_are_the_same(client: Any) -> None:
    """A query and a file (`curl -F data=@file`) are read alike; text in a form has the line ends of mail."""
    data = "a b c\r\nd e\r\n"
    by_query = client.get("/process", params={"data": data, "input": "horizontal"}).json()
    by_parts = client.post("/process", files={"data": ("a.txt", data), "input": (None, "horizontal")}).json()
    assert by_query == by_parts
    as_text = client.post("/process", files={"data": (None, data), "input": (None, "horizontal")}).json()
    assert as_text["result"] == by_query["result"].replace("\r\n", "\n")
    assert by_query["result"] == udpipe(client, data, input="horizontal")
    assert by_query["model"] == "good"


def test_udpipe_lists_models(client: Any) -> None:
    """As UDPipe lists its own."""
    assert client.get("/models").json() == {
        "models": {"good": ["tagger"], "poor": ["tagger"]}, "default_model": "good",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "argument 'data' is missing"),
        ({"data": "x", "tokenizer": ""}, "no tokenizer"),
        ({"data": "x", "parser": ""}, "no parser"),
        ({"data": "x", "model": "../../etc/passwd"}, "There is no model"),
        ({"data": "x", "input": "epe"}, "input=epe: expected one of conllu"),
        ({"data": "x", "output": "matxin", "input": "text"}, "output=matxin: expected one of"),
        ({"data": "1\tx\n", "input": "conllu"}, "data:1"),
    ],
)
def test_udpipe_errors_are_text(client: Any, fields: dict[str, str], said: str) -> None:
    """400, a sentence, and no traceback."""
    reply = client.post("/process", data=fields)
    assert reply.status_code == 400
    assert reply.headers["content-type"].startswith("text/plain")
    assert said in reply.text
    assert "Traceback" not in reply.text


def test_bytes_that_are_no_text_are_refused(client: Any) -> None:
    """Invalid UTF-8, as data and as JSON."""
    reply = client.get("/process?input=horizontal&data=%ff")
    assert (reply.status_code, reply.text.startswith("data:1: ")) == (400, True)
    reply = client.post("/process", files={"data": (None, b"a \xff b"), "input": (None, "horizontal")})
    assert (reply.status_code, "UTF-8" in reply.text) == (400, True)
    reply = client.post("/api/v1/tag", content=b'{"text": "\xff"}', headers={"Content-Type": "application/json"})
    assert reply.json() == {"error": "Expected a JSON object in UTF-8."}
    for body in (b'{"text": "a \\ud800 b"}', b'{"tokens": ["\\udcff"]}', b'{"sentences": [["\\udcff"]]}'):
        # Half a character, escaped.
        reply = client.post("/api/v1/tag", content=body, headers={"Content-Type": "application/json"})
        assert (reply.status_code, "half of one" in reply.json()["error"]) == (400, True)


# ---- JSON ----


def ask(client: Any, path: str, body: Any = None, **query: Any) -> Any:
    """The answer of the interface."""
    reply = client.get(f"/api/v1{path}", params=query) if body is None else client.post(f"/api/v1{path}", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_tag_has_posteriors_and_best_sequences(client: Any, good: Path, corpus: Corpus) -> None:
    """The numbers are the library's."""
    (tokens,) = words(corpus)
    tagger = load(good)
    found = ask(client, "/tag", {"tokens": tokens, "k": 3})
    (sentence,) = found["sentences"]
    assert sentence["labels"] == tagger.predict([tokens])[0]
    marginals = tagger.predict_marginals([tokens])[0]
    for row, expected in zip(sentence["posterior"], marginals, strict=True):
        assert row == pytest.approx([expected[name] for name in found["names"]], abs=1e-6)
    best = tagger.predict_kbest([tokens], 3)[0]
    assert [s["labels"] for s in sentence["sequences"]] == [labels for labels, _ in best]


def test_forced_and_forbidden_labels_change_the_rest(client: Any, corpus: Corpus) -> None:
    """What is allowed is obeyed, and probabilities are those given it."""
    (tokens,) = words(corpus)
    free = ask(client, "/tag", {"tokens": tokens})
    names, label = free["names"], free["sentences"][0]["labels"][0]
    others = [name for name in names if name != label]
    allowed = [[others, *[None] * (len(tokens) - 1)]]
    (bound,) = ask(client, "/tag", {"tokens": tokens, "allowed": allowed})["sentences"]
    assert bound["labels"][0] != label
    assert bound["posterior"][0][names.index(label)] == 0.0
    assert math.fsum(bound["posterior"][0]) == pytest.approx(1.0, abs=1e-5)
    lattice = ask(client, "/lattice", {"tokens": tokens, "allowed": allowed[0]})
    assert lattice["labels"] == bound["labels"]


def test_explanations_sum_to_the_difference(client: Any, corpus: Corpus) -> None:
    """For all tokens and for one."""
    (tokens,) = words(corpus)
    every = ask(client, "/explain", {"text": " ".join(tokens)})["explanations"]
    assert [e["position"] for e in every] == list(range(len(tokens)))
    for each in every:
        assert math.fsum(c["value"] for c in each["contributions"]) == pytest.approx(each["difference"])
        assert {"the labels of its neighbours"} == {
            c["words"] for c in each["contributions"] if c["attribute"] == "bias" and len(c["labels"]) > 1
        }
    assert ask(client, "/explain", {"tokens": tokens, "position": 1})["explanations"] == [every[1]]


def test_reasons_are_given_what_is_allowed(client: Any, corpus: Corpus) -> None:
    """Both sequences obey; a forced label has no runner-up, and other tokens have the labels that Tag shows."""
    (tokens,) = words(corpus)
    free = ask(client, "/tag", {"tokens": tokens})
    other = next(name for name in free["names"] if name != free["sentences"][0]["labels"][0])
    allowed = [[other], *[None] * (len(tokens) - 1)]
    (bound,) = ask(client, "/tag", {"tokens": tokens, "allowed": [allowed]})["sentences"]
    found = ask(client, "/explain", {"tokens": tokens, "allowed": allowed})["explanations"]
    assert [each["label"] for each in found] == bound["labels"]
    assert (found[0]["label"], found[0]["runner_up"]) == (other, None)
    for each, p in zip(found, bound["probabilities"], strict=True):
        assert each["probability"] == pytest.approx(p, abs=1e-5)
        assert each["runner_up"] is None or each["runner_up_sequence"][0] == other
        assert math.fsum(c["value"] for c in each["contributions"]) == pytest.approx(each["difference"])


def test_arcs_of_the_lattice_sum_to_its_labels(client: Any, corpus: Corpus) -> None:
    """Sums over the label before are the posterior; faint arcs are left out."""
    (tokens,) = words(corpus)
    found = ask(client, "/lattice", {"tokens": tokens})
    for t in range(1, len(tokens)):
        sums = [0.0] * len(found["names"])
        for _, b, p in found["arcs"][t]:
            sums[b] += p
        assert sums == pytest.approx(found["posterior"][t], abs=0.01)


def test_errors_have_rates_matrix_and_sentences(client: Any, good: Path, treebank: Path) -> None:
    """The rates are those of `vcrf eval`."""
    measured = json.loads(Call()("eval", good, treebank, "--split", "test", "--json").stdout)
    found = ask(client, "/errors", sort="most")
    assert found["token_error"]["rate"] == pytest.approx(measured["token_error"])
    assert [found["token_error"]["low"], found["token_error"]["high"]] == pytest.approx(
        measured["token_error_interval"]
    )
    off_diagonal = sum(n for i, row in enumerate(found["matrix"]) for j, n in enumerate(row) if i != j)
    assert off_diagonal == found["token_error"]["n_wrong"]
    worst = found["confusions"][0]
    some = ask(client, "/errors", true=worst["true"], predicted=worst["predicted"], sort="file")
    assert 0 < some["n_sentences"] <= found["n_sentences"]
    assert [row["number"] for row in some["sentences"]] == sorted(row["number"] for row in some["sentences"])
    assert ask(client, "/errors", unknown="1")["n_sentences"] <= found["n_sentences"]


def test_history_compare_trust_families_and_bounds(client: Any) -> None:
    """Each has what its view draws."""
    history = ask(client, "/history")
    last = history["records"][-1]
    assert last["lower_bound"] == pytest.approx(last["objective"] - last["gap"])
    assert last["dev_error"] is not None
    compared = ask(client, "/compare")
    assert (compared["a"], compared["b"]) == ("good", "poor")
    assert 0.0 <= compared["comparison"]["p_value"] <= 1.0
    assert compared["n_sentences"] >= len(compared["sentences"]) > 0
    trust = ask(client, "/trust")
    shares = [promise["share"] for promise in trust["promises"]]
    assert shares == sorted(shares)
    assert all(0.0 <= point["error"] <= 1.0 for point in trust["curve"])
    families = ask(client, "/families", top=2)
    assert sum(f["n_active"] for f in families["families"]) > 0
    assert all(len(listed) <= 2 for listed in families["features"].values())
    while (bounds := ask(client, "/bounds"))["is_running"]:
        time.sleep(0.2)
    assert bounds["bounds"][0]["total"] <= bounds["bounds"][-1]["total"]


def test_suggest_orders_sentences(client: Any, corpus: Corpus) -> None:
    """The most useful first, as the library says."""
    found = ask(client, "/suggest", {"sentences": words(corpus, 10), "n": 3, "by": "entropy"})
    values = [s["usefulness"] for s in found["suggestions"]]
    assert values == sorted(values, reverse=True)
    assert len(values) == 3


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/tag", {"text": "a", "k": 1000}, "k: expected a whole number from 0 to 100"),
        ("/tag", {"tokens": ["a", ""]}, "none of them empty"),
        ("/tag", {"tokens": "a"}, "tokens: expected a list"),
        ("/tag", {"sentences": "a"}, "sentences: expected a list"),
        ("/tag", {"tokens": ["a"], "allowed": [["x"]]}, "allowed, token 0: expected labels of the model"),
        ("/tag", {"tokens": ["a"], "allowed": [[[]]]}, "got none"),
        ("/tag", {"tokens": ["a"], "allowed": [[None, None]]}, "got 2 for 1 tokens"),
        ("/tag", {"tokens": ["a"], "allowed": "x"}, "one entry a sentence"),
        ("/tag", {}, "Expected `tokens`"),
        ("/tag", {"text": "a", "model": 3}, "model: expected text"),
        ("/tag", [1], "Expected a JSON object"),
        ("/explain", {"tokens": ["a"], "position": 1}, "position: expected a whole number"),
        ("/explain", {"tokens": []}, "got no token"),
        ("/explain", {"tokens": ["a"], "allowed": [["x"]]}, "allowed, token 0: expected labels of the model"),
        ("/explain", {"tokens": ["a"], "allowed": "x"}, "allowed: expected null, or a list"),
        ("/lattice", {"tokens": ["a"], "model": "/etc/passwd"}, "There is no model"),
        ("/suggest", {"sentences": [["a"]], "by": "luck"}, "by"),
    ],
)
def test_wrong_requests_are_told_what_is_wrong(client: Any, path: str, body: Any, said: str) -> None:
    """400 and a sentence."""
    reply = client.post(f"/api/v1{path}", json=body)
    assert reply.status_code == 400, reply.text
    assert said in reply.json()["error"]


def test_a_model_without_calibration_and_missing_data_say_so(models: Any) -> None:
    """404 with what to do."""
    from vcrf.web.models import Models

    bare = Models([models.get("poor")])
    for client in opened(bare):
        assert "vcrf calibrate" in client.get("/api/v1/trust").json()["error"]
        assert "--data" in client.get("/api/v1/errors").json()["error"]
        assert "start with two" in client.get("/api/v1/compare").json()["error"]
        assert "--pool" in client.get("/api/v1/label").json()["error"]


def test_answers_about_trust_are_few(client: Any, models: Any) -> None:
    """Any share may be asked for, and any unit be wrong: only the last answers are kept."""
    from vcrf.web.models import MOST_RECENT

    for i in range(1, 40):
        ask(client, "/trust", confidence=0.9 + i / 1000)
        assert client.get("/api/v1/trust", params={"unit": f"x{i}"}).status_code == 400
    assert len(models.get("good").recent) <= MOST_RECENT
    assert ask(client, "/trust", confidence=0.939)["confidence"] == 0.939


def test_what_is_remembered_is_computed_once() -> None:
    """Of the keys asked for last; what failed is tried again."""
    from vcrf.web.models import Remembered

    found, computed = Remembered(2), []

    def get(key: int) -> int:
        return found.get(key, lambda: computed.append(key) or key)  # type: ignore[func-returns-value]

    for key in (1, 2, 1, 3, 1, 2):
        assert get(key) == key
    assert computed == [1, 2, 3, 2]
    with pytest.raises(ZeroDivisionError):
        found.get(9, lambda: 1 // 0)
    assert len(found) == 2
    assert found.get(9, lambda: 7) == 7


# ---- safety ----


def test_limits_hold(models: Any) -> None:
    """Body, tokens of a request, tokens of a sentence, and what waits."""
    for client in opened(models, limits=Limits(body=2000, tokens=50, sentence=20)):
        assert client.post("/process", data={"data": "a " * 2000}).status_code == 413
        reply = client.post("/process", data={"data": "a b c d e\n" * 40, "input": "horizontal"})
        assert (reply.status_code, "50 tokens" in reply.text) == (413, True)
        assert client.post("/api/v1/tag", json={"text": "a " * 30}).status_code == 413
        assert client.post("/api/v1/tag", json={"text": "a " * 30, "k": 0}).status_code == 200
        assert client.post("/api/v1/tag", json={"text": "a " * 60, "k": 0}).status_code == 413
        assert client.post("/api/v1/tag", json={"sentences": [[]] * 60, "k": 0}).status_code == 413
        assert client.post("/api/v1/lattice", json={"text": "a " * 30}).status_code == 413
        assert client.post("/api/v1/explain", json={"text": "a " * 10}).status_code == 413
    for client in opened(models, limits=Limits(bodies=1000)):
        assert client.post("/process", data={"data": "a " * 1000}).status_code == 503
        for _ in range(20):
            assert client.post("/process", data={"data": "a b", "input": "horizontal"}).status_code == 200
    for client in opened(models, limits=Limits(waiting=0)):
        reply = client.post("/api/v1/tag", json={"text": "a"})
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")


def test_a_token_is_asked_for(models: Any) -> None:
    """Data only for who brings it; the page's own files and the health are for all."""
    for client in opened(models, token="secret"):
        for path in ("/models", "/metrics", "/api/v1/models", "/process?data=a"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/api/v1/models", headers={"Authorization": "Bearer secret"}).status_code == 200
        assert client.get("/health").status_code == 200
        assert client.get("/").status_code == 200


def test_answers_have_strict_headers(client: Any) -> None:
    """Everywhere, errors included."""
    for path in ("/", "/health", "/nothing", "/api/v1/models"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/views/../../app.py", "/style.css/..", "//etc/passwd"]
)
def test_no_path_of_a_request_is_looked_up(client: Any, path: str) -> None:
    """Only the files that are listed are there; the path is sent as it is."""
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=20) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 404")


def test_other_names_and_other_sites_are_refused(models: Any) -> None:
    """A name that leads here by trickery, and a form of another page."""
    for client in opened(models, hosts=("127.0.0.1", "localhost", "::1")):
        assert client.get("/health", headers={"Host": "evil.example"}).status_code == 400
        assert client.get("/health", headers={"Host": "localhost:8080"}).status_code == 200
        assert client.get("/health", headers={"Host": "[::1]:8080"}).status_code == 200
        reply = client.post("/api/v1/tag", content='{"text": "a"}', headers={"Content-Type": "text/plain"})
        assert reply.status_code == 415


def test_no_traceback_reaches_a_client(
    client: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug is a sentence for the client and a traceback for the log."""
    monkeypatch.setattr("vcrf.web.api.sentence_view", lambda *_: 1 / 0)
    with caplog.at_level(logging.CRITICAL):
        reply = client.post("/api/v1/tag", json={"text": "a"})
    assert reply.status_code == 500
    assert reply.json() == {"error": "The service failed to answer. Its log has the reason."}


def test_what_takes_too_long_is_given_up(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 after the limit, while others are served."""
    import threading

    release = threading.Event()
    monkeypatch.setattr("vcrf.web.api.lattice_view", lambda *_: release.wait(20))
    for client in opened(models, limits=Limits(seconds=0.2)):
        assert client.post("/api/v1/lattice", json={"text": "a"}).status_code == 503
        assert client.post("/api/v1/tag", json={"text": "a"}).status_code == 200
        release.set()


def test_large_requests_leave_room_for_others(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there are workers, none of which ends: small ones are answered in between."""
    import threading

    import httpx

    from vcrf.labelling.viewing import sentence_view

    may_end, found = threading.Event(), []

    def slow(*args: Any) -> Any:
        may_end.wait(0.05)
        return sentence_view(*args)

    monkeypatch.setattr("vcrf.web.api.sentence_view", slow)
    monkeypatch.setattr("vcrf.web.api.errors_view", lambda *_: may_end.wait(20.0))
    for client in opened(models, n_workers=2):

        def tag(address: Any = client.base_url) -> None:
            body = {"sentences": [["a", "b"]] * 1000, "k": 0}
            found.append(httpx.post(f"{address}api/v1/tag", json=body, trust_env=False, timeout=60).status_code)

        def errors(address: Any = client.base_url) -> None:
            found.append(httpx.get(f"{address}api/v1/errors", trust_env=False, timeout=60).status_code)

        large = [threading.Thread(target=target) for target in (tag, tag, tag, errors, errors)]
        for thread in large:
            thread.start()
        while client.service.counts.at_work < len(large):
            time.sleep(0.01)
        for path in ("/api/v1/tag", "/api/v1/lattice"):
            assert client.post(path, json={"text": "a"}).status_code == 200
        assert client.post("/process", data={"data": "a", "input": "horizontal"}).status_code == 200
        assert found == []
        may_end.set()
        for thread in large:
            thread.join()
        assert found == [200] * len(large)


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/api/v1/tag", {"json": {"text": "a b"}}),
        ("/process", {"data": {"data": "a b", "input": "horizontal"}}),
        ("/health", None),
    ],
)
def test_a_small_request_goes_to_the_workers_once(client: Any, path: str, given: Any) -> None:
    """And one that needs no work not at all."""
    service, calls = client.service, []
    submit = service.pool.submit
    service.pool.submit = lambda *args: calls.append(1) or submit(*args)
    assert (client.get(path) if given is None else client.post(path, **given)).status_code == 200
    assert len(calls) == (given is not None)


def test_a_view_is_what_the_methods_give_one_by_one(good: Path, poor: Path, corpus: Corpus) -> None:
    """It scores the sentence once, with a calibration and without."""
    from vcrf.labelling.viewing import sentence_view

    for path in (good, poor):
        tagger, x = load(path), corpus.tokens[-1]
        for allowed in (None, [[tagger.classes_[-1]], *[None] * (len(x) - 1)]):
            choices = None if allowed is None else [allowed]
            (posterior,) = tagger.predict_marginals([x], allowed=choices)
            view = sentence_view(tagger, x, 4, allowed)
            assert [view["labels"]] == tagger.predict([x], allowed=choices)
            assert view["posterior"] == [[round(row[name], 6) for name in tagger.classes_] for row in posterior]
            assert view["probabilities"] == [round(row[y], 6) for row, y in zip(posterior, view["labels"], strict=True)]
            assert [(each["labels"], each["probability"]) for each in view["sequences"]] == [
                (y, round(p, 6)) for y, p in tagger.predict_kbest([x], 4, allowed=choices)[0]
            ]
        assert sentence_view(tagger, [], 4)["sequences"] == []


def test_work_for_a_client_that_has_gone_ends(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two sentences, long before the request is done."""
    calls: list[int] = []
    monkeypatch.setattr("vcrf.web.api.sentence_view", lambda *_: calls.append(1) or time.sleep(0.06))
    body = json.dumps({"sentences": [["a"]] * 1000, "k": 0}).encode()
    head = f"POST /api/v1/tag HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    for client in opened(models):
        with socket.create_connection((client.base_url.host, client.base_url.port), timeout=20) as connection:
            connection.sendall(head.encode() + b"\r\n\r\n" + body)
            while not calls:
                time.sleep(0.01)
        while client.service.counts.at_work:
            time.sleep(0.02)
        assert len(calls) < 200


def test_a_body_that_does_not_come_is_given_up(models: Any) -> None:
    """408, and a client that leaves in the middle disturbs nobody."""
    for client in opened(models, limits=Limits(seconds=0.3)):
        head = b"POST /process HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ndata=a"
        with socket.create_connection((client.base_url.host, client.base_url.port), timeout=20) as connection:
            connection.sendall(head)
            assert connection.recv(100).startswith(b"HTTP/1.1 408")
        with socket.create_connection((client.base_url.host, client.base_url.port), timeout=20) as connection:
            connection.sendall(head)
        assert client.get("/health").status_code == 200


def test_metrics_count_requests(client: Any) -> None:
    """By route and status; nothing of a request is in them."""
    client.post("/api/v1/tag", json={"text": "a b c"})
    client.get("/api/v1/nothing-like-this")
    text = client.get("/metrics").text
    assert 'vcrf_requests_total{route="/api/v1/tag",status="200"} 1' in text
    assert 'vcrf_requests_total{route="other",status="404"} 1' in text
    assert "vcrf_tokens_total 3" in text
    assert "nothing-like-this" not in text


# ---- the description ----


def test_openapi_describes_every_route(client: Any) -> None:
    """Paths and methods are the application's, and references lead somewhere."""
    document = client.get("/api/v1/openapi.json").json()
    described = {(path, method.upper()) for path, item in document["paths"].items() for method in item}
    from vcrf.page.files import PAGE_FILES
    from vcrf.web.app import build_app

    app: Any = build_app(client.service)
    pages = {"/", *(f"/{name}" for name in PAGE_FILES)}
    routes = {
        (route.path, method) for route in app.app.routes for method in route.methods - {"HEAD"}
        if route.path not in pages
    }  # fmt: skip
    assert described == routes
    text = json.dumps(document)
    for kind in ("schemas", "responses"):
        for name in document["components"][kind]:
            assert f"#/components/{kind}/{name}" in text, f"{name} is not used"
    for part in text.split('"#/components/')[1:]:
        kind, name = part.split('"')[0].split("/")
        assert name in document["components"][kind]


def test_answers_have_the_fields_that_are_described(client: Any, corpus: Corpus) -> None:
    """Of the answers whose fields the description lists."""
    schemas = client.get("/api/v1/openapi.json").json()["components"]["schemas"]
    (tokens,) = words(corpus)
    answers = {
        "Models": ask(client, "/models"), "Tagged": ask(client, "/tag", {"tokens": tokens}),
        "Explained": ask(client, "/explain", {"tokens": tokens}),
        "LatticeAnswer": ask(client, "/lattice", {"tokens": tokens}), "History": ask(client, "/history"),
        "Suggested": ask(client, "/suggest", {"sentences": [tokens]}),
        "UdpipeModels": client.get("/models").json(),
        "UdpipeResult": client.get("/process", params={"data": "a", "input": "text"}).json(),
    }  # fmt: skip
    for name, answer in answers.items():
        assert set(schemas[name]["properties"]) <= set(answer), name


def test_names_of_models_are_distinct() -> None:
    """Two files of one name get a number."""
    from vcrf.web.models import names_of

    assert names_of([Path("a/x.vcrf"), Path("b/x.vcrf"), Path("y.model")]) == ["x", "x-2", "y.model"]


ODD = [
    None, True, -1, 1e308, "", "a\0b", "\u2028 x", "x" * 50_000, [], [""], [None], [["a"]], [["a", ""]], {}, {"a": 1},
    [[["open1"]]], "5", [1, 2], "த 漢", "\t\n ",
]  # fmt: skip


def test_odd_values_are_answered_or_refused(client: Any) -> None:
    """No request makes the service fail: fields of any kind, drawn with one seed."""
    fields = {
        "tag": ("text", "tokens", "sentences", "k", "allowed", "model"), "explain": ("text", "tokens", "position"),
        "lattice": ("text", "tokens", "allowed"), "suggest": ("text", "sentences", "n", "by", "per"),
    }  # fmt: skip
    rng = random.Random(0)
    for path, names in fields.items():
        for _ in range(40):
            body = {name: rng.choice(ODD) for name in names if rng.random() < 0.6}
            reply = client.post(f"/api/v1/{path}", json=body)
            assert reply.status_code in (200, 400, 413), (path, str(body)[:300], reply.text)
    for path in ("errors", "history", "compare", "trust", "families", "label"):
        for _ in range(10):
            names = ("model", "a", "sort", "offset", "limit", "unit", "confidence", "top", "n", "by")
            query = {name: str(rng.choice(ODD))[:200] for name in names if rng.random() < 0.3}
            reply = client.get(f"/api/v1/{path}", params=query)
            assert reply.status_code in (200, 400, 404), (path, query, reply.text)
    for content in (b"", b"[" * 100_000, b'{"a":' * 5_000, b"nul", b"1"):
        reply = client.post("/api/v1/tag", content=content, headers={"Content-Type": "application/json"})
        assert reply.status_code == 400


def test_sentences_of_the_training_are_said(models: Any, good: Path, poor: Path, corpus: Corpus) -> None:
    """An error on them says little: Errors and Compare say so."""
    from vcrf.web.models import Models, read_served
    from vcrf.web.trying import compare_view, errors_view

    assert errors_view(models, next(iter(models)))["seen"] == ""
    again = [read_served(path, path.stem) for path in (good, poor)]
    trained = Models(again, corpus[:60], "train")
    assert "are ones that the model was trained on (100 %)" in errors_view(trained, again[0])["seen"]
    assert all("trained on" in told for told in compare_view(trained, *again)["seen"])
