from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from commands import Call
from vcrf import load
from vcrf.data import Corpus
from vcrf.errors import InputError
from vcrf.labelling.viewing import sentence_page
from vcrf.page.files import MODULES, PAGE_FILES, page_file
from vcrf.page.standalone import joined_modules, standalone
from vcrf.solvers.result import IterationRecord
from vcrf.web.forms import form_fields
from vcrf.web.limits import Refused
from vcrf.web.watching import LiveTraining

STATIC = Path(str(__import__("vcrf.page", fromlist=["page"]).__file__)).parent / "static"


def test_every_file_of_the_page_is_listed_and_there() -> None:
    """What is in the folder is served, and nothing else."""
    found = {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file()}
    assert found == set(PAGE_FILES)
    with pytest.raises(KeyError):
        page_file("../files.py")


@pytest.mark.parametrize("name", MODULES)
def test_modules_import_what_others_export_and_reach_nothing_else(name: str) -> None:
    """Imports are of files of the page, from those before it; no address of another machine, no markup from text."""
    text = page_file(name).decode()
    folder = Path(name).parent
    for names, source in re.findall(r'^import (?:\{([^}]*)\} from )?"([^"]+)";$', text, re.MULTILINE):
        target = (STATIC / folder / source).resolve().relative_to(STATIC.resolve()).as_posix()
        assert MODULES.index(target) < MODULES.index(name)
        exported = set(
            re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", page_file(target).decode(), re.M)
        )
        assert {each.strip() for each in names.split(",") if each.strip()} <= exported
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)
    assert re.findall(r"https?://[^\s\"']+", text) in ([], ["http://www.w3.org/2000/svg"])


def test_a_standalone_page_needs_nothing_else(good: Path, corpus: Corpus) -> None:
    """One file: no address in it but names of formats; what is said in it cannot become markup."""
    tokens = [*corpus.tokens[0], "</script><b>x</b>", "<!--"]
    text = str(load(good).render(tokens))
    assert "<b>x</b>" not in text
    assert not re.search(r"(?:src|href)=\"(?!#)", text.replace('href="#main"', ""))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "unsafe" not in policy[1]
    held = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert held is not None
    assert json.loads(held[1])["answers"]["/tag"]["sentences"][0]["tokens"] == tokens


def test_a_notebook_gets_a_frame(good: Path, corpus: Corpus) -> None:
    """Escaped, and without rights in the notebook."""
    shown = load(good).render(" ".join(corpus.tokens[0]))._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in shown
    assert "<script" not in shown


def test_titles_are_escaped() -> None:
    """A model may have any name."""
    assert "<i>" not in str(standalone("<i>", ["tag"], {}))


def test_a_page_is_about_words(good: Path) -> None:
    """Anything else is refused, with the token that is wrong; text is split at blanks."""
    tagger = load(good)
    assert '"tokens": ["abc"]' in str(tagger.render("abc"))
    wrong: dict[str, Any] = {
        "got no token": [], r"got '' at token 1": ["a", ""], r"got 3 at token 0": [3], r"got b'ab'": b"ab",
        "got None": None, r"token 1, 'x\\ud800', has half a character": ["a", "x\ud800"], "half a char": "a \udcff",
    }  # fmt: skip
    for said, sentence in wrong.items():
        with pytest.raises(InputError, match=said):
            tagger.render(sentence)
    with pytest.raises(InputError, match=r"expected a list of tokens, got 'abc'"):
        sentence_page(tagger, "abc")


def test_explain_and_eval_write_pages(good: Path, treebank: Path, tmp_path: Path) -> None:
    """`--html` writes one file each, and refuses to overwrite what it reads."""
    call = Call()
    said = call("explain", good, "a b c", "--html", tmp_path / "why.html").stderr
    assert "why.html: written" in said
    assert (tmp_path / "why.html").read_text("utf-8").startswith("<!doctype html>")
    call("eval", good, treebank, "--split", "test", "--html", tmp_path / "report.html", "--json")
    assert "/errors" in (tmp_path / "report.html").read_text("utf-8")
    assert "is also the model" in call("explain", good, "a", "--html", good, code=2).stderr
    assert "one model" in call("eval", good, good, treebank, "--html", tmp_path / "x.html", code=2).stderr


def test_all_modules_join() -> None:
    """No import and no export is left, and no name is lost."""
    text = joined_modules()
    assert not re.search(r"^(?:import|export) ", text, re.MULTILINE)
    assert "</script" not in text


def test_forms_are_read_as_bytes() -> None:
    """Urlencoded and multipart; what is no form is refused."""
    assert form_fields("application/x-www-form-urlencoded", b"data=a+b%0A&x=") == {"data": b"a b\n", "x": b""}
    assert form_fields("", "data=%E0%AE%A4+é".encode()) == {"data": "த é".encode()}
    body = b'--B\r\nContent-Disposition: form-data; name="data"; filename="n"\r\n\r\n a\r\n--\r\n\xff\r\n--B--\r\n'
    assert form_fields('multipart/form-data; boundary="B"', body) == {"data": b" a\r\n--\r\n\xff"}
    # Text, not a file: clients write the line ends of mail there.
    text = body.replace(b'; filename="n"', b"")
    assert form_fields('multipart/form-data; boundary="B"', text) == {"data": b" a\n--\n\xff"}
    for kind, wrong in [
        ("multipart/form-data", b""), ("multipart/form-data; boundary=B", b"--B\r\nno end"), ("text/plain", b"x"),
        ("application/x-www-form-urlencoded", b"&".join(b"a=%d" % i for i in range(99))),
    ]:  # fmt: skip
        with pytest.raises(Refused):
            form_fields(kind, wrong)


def test_a_live_training_begins_anew_with_each_point_of_a_search() -> None:
    """Fewer passes than before are another training; the end is told once it is asked for."""
    live = LiveTraining("m", 1e-3)

    def record(n: int) -> IterationRecord:
        return IterationRecord(n, 0.1 * n, 2.0, 1.0 / n, 0.0, n, n, "scan")

    for n in (1, 2, 3, 1, 5):
        live.see(record(n))
    view = live.view()
    assert [row["n_passes"] for row in view["records"]] == [1, 5]
    assert view["is_running"]
    assert not live.seen_end.is_set()
    live.end("done")
    assert (live.view()["status"], live.seen_end.is_set()) == ("done", True)
