"""The page in a real browser: each view is opened, used and read back; no error on the console, axe-core content."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from vcrf import load
from vcrf.data import Corpus
from vcrf.web.annotating import Annotating
from vcrf.web.server import address_of, listen, serving
from vcrf.web.service import Service

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium or chromedriver: apt-get install chromium chromium-driver"
)

VIEWS = ["tag", "why", "lattice", "errors", "trust", "training", "compare", "families", "label"]
SIZES = [(390, 844), (820, 1180), (1280, 800)]


class Browser:
    """A browser with a page; what its console says is kept."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver, self.address = driver, address

    def open(self, hash_: str = "", address: str = "") -> None:
        """Go to an address and wait until the view is drawn."""
        self.driver.get("about:blank")
        self.driver.get((address or self.address) + hash_)
        self.ready()

    def ready(self) -> None:
        """Wait until the view is drawn."""
        self.wait("return !!document.querySelector('main .view h1') && !document.querySelector('main[aria-busy]')")

    def wait(self, script: str, seconds: float = 60.0) -> Any:
        """Wait until a script gives something true."""
        end = time.monotonic() + seconds
        while not (found := self.driver.execute_script(script)):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {script}; the page says: {self.text('main')[:500]}")
            time.sleep(0.05)
        return found

    def run(self, script: str, *args: Any) -> Any:
        return self.driver.execute_script(script, *args)

    def text(self, selector: str) -> str:
        found: str = self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)
        return found

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector
        )
        return found

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def keys(self, *keys: str) -> None:
        """Type into what has the focus."""
        from selenium.webdriver import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def complaints(self) -> list[str]:
        """What the console said since the last call: errors, and what the policy has blocked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def resize(self, width: int, height: int, scheme: str = "light") -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """A browser without a screen."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=str(DRIVER)))
    try:
        yield found
    finally:
        found.quit()


@pytest.fixture(scope="module")
def pool_file(folder: Path) -> Path:
    """Where answers go."""
    return folder / "answers.conllu"


@pytest.fixture(scope="module")
def browser(driver: Any, models: Any, corpus: Corpus, pool_file: Path) -> Iterator[Browser]:
    """The page of a service with everything."""
    from vcrf.data.layout import conllu_layout
    from vcrf.web.models import Models

    own = Models(list(models), models.data, models.data_name)
    pool = [(tokens, f"pool.txt:{i}") for i, tokens in enumerate(corpus.tokens[60:80], 1)]
    annotating = Annotating(own, pool, pool_file, corpus[:60], conllu_layout("upos"))
    service, listening = Service(own, annotating=annotating), listen("127.0.0.1", 0)
    with serving(service, listening):
        yield Browser(driver, address_of(listening, "127.0.0.1"))


@pytest.fixture(autouse=True)
def quiet(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaves a complaint on the console."""
    yield
    if "browser" in request.fixturenames:
        assert request.getfixturevalue("browser").complaints() == []


def sentence(corpus: Corpus) -> list[str]:
    """One of the test sentences."""
    return corpus.tokens[100]


def test_tag_shows_labels_and_obeys(browser: Browser, corpus: Corpus, good: Path) -> None:
    """Typed text is labelled; forcing a label changes the sentence and the address; all of it can be shared."""
    tokens = sentence(corpus)
    browser.open("#/tag")
    browser.run(
        "const box = document.getElementById('text'); box.value = arguments[0]; "
        "box.dispatchEvent(new Event('input', { bubbles: true }))",
        " ".join(tokens),
    )
    browser.wait(f"return document.querySelectorAll('.sentences .token').length === {len(tokens)}")
    assert browser.texts(".sentences .tag") == load(good).predict([tokens])[0]
    browser.click(".sentences .token[data-t='1']")
    browser.wait("return document.querySelectorAll('.posterior tbody tr').length === 5")
    second = browser.text(".posterior tbody tr:nth-child(2) th")
    browser.click(".posterior tbody tr:nth-child(2) td.acts button")
    browser.wait(f"return document.querySelector('.sentences .token[data-t=\"1\"] .tag').innerText === '{second}'")
    forced = browser.texts(".sentences .tag")
    assert load(good).predict([tokens], allowed=[[None, second, *[None] * (len(tokens) - 2)]])[0] == forced
    shared = browser.run("return location.href")
    browser.open(address=shared)
    browser.wait("return document.querySelectorAll('.sentences .token.bound').length === 1")
    assert browser.texts(".sentences .tag") == forced
    lattice = browser.run("return [...document.querySelectorAll('a')].find((a) => a.innerText === 'The lattice').hash")
    browser.open(lattice)
    browser.wait("return document.querySelector('.hint').innerText.includes('forced or forbidden at 1 token')")
    assert second in browser.run("return document.querySelector('svg.lattice').getAttribute('aria-label')")
    browser.open(address=shared)
    browser.wait("return document.querySelectorAll('.sequences li').length > 0")
    assert len(browser.texts(".sequences li")) == 5


def test_the_keyboard_stays_where_it_is(browser: Browser, corpus: Corpus) -> None:
    """After a label is forced, freed again, and after a confusion is chosen and left."""
    browser.open("#/tag?t=1&text=" + quote(" ".join(sentence(corpus))))
    browser.wait("return document.querySelectorAll('.posterior tbody tr').length === 5")
    name = browser.run(
        "const button = document.querySelector('.posterior tbody tr:nth-child(2) button'); button.focus(); "
        "return button.getAttribute('aria-label')"
    )
    for pressed in ("true", "false"):
        browser.keys("\ue007")  # Enter
        browser.wait(f"return document.querySelector('[aria-label=\"{name}\"]').ariaPressed === '{pressed}'")
        assert browser.run("return document.activeElement.getAttribute('aria-label')") == name
    browser.open("#/errors")
    name = browser.run(
        "const cell = document.querySelector('.cell'); cell.focus(); return cell.getAttribute('aria-label')"
    )
    browser.keys("\ue007")
    browser.wait("return location.hash.includes('true=')")
    browser.wait("return document.querySelector('.cell[aria-pressed=true]') !== null")
    assert browser.run("return document.activeElement.getAttribute('aria-label')") == name
    browser.run("[...document.querySelectorAll('button')].find((b) => b.innerText === 'All confusions').focus()")
    browser.keys("\ue007")
    browser.wait("return !location.hash.includes('true=')")
    browser.wait("return document.querySelector('.cell[aria-pressed=true]') === null")
    assert browser.run("return document.querySelector('main .view').contains(document.activeElement)")
    browser.open("#/trust")
    browser.run("[...document.querySelectorAll('select')].at(-1).focus()")
    browser.keys("\ue015")  # down
    browser.wait("return location.hash.includes('confidence=0.99')")
    assert browser.run("return document.activeElement.closest('label').innerText.includes('Confidence')")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("#/tag?t=x&s=-1&text=a+b", "The address says t=x; expected is a whole number up to 1."),
        ("#/tag?k=1e9&text=a+b", "The address says k=1e9; expected is a whole number up to 100."),
        ("#/tag?t=0&text=a+b&a=0.0:NOPE", "The address says a=0.0:NOPE; expected is a place and labels"),
        ("#/tag?model=nope&text=a+b", "There is no model nope here: this is good."),
        ("#/why?t=x&text=a+b", "The address says t=x; expected is a whole number up to 1."),
        ("#/why?t=99&text=a+b", "The address says t=99; expected is a whole number up to 1."),
        ("#/tag?t=2&text=a+b", "The address says t=2; expected is a whole number up to 1."),
        ("#/tag?s=1&text=a+b", "The address says s=1; expected is a whole number up to 0."),
        ("#/tag?text=a+b&a=0.2:NOUN", "The address says a=0.2:NOUN; expected is a place and labels"),
        ("#/lattice?text=a+b&a=%E0%A4%A;;x", "The address says a="),
        ("#/errors?sort=luck", "The address says sort=luck; expected is one of surest, doubtful"),
        ("#/trust?unit=page&confidence=2", "The address says confidence=2; expected is one of 0.9"),
        ("#/compare?a=nope", "The address says a=nope; expected is one of good, poor"),
        ("#/label?by=luck", "The address says by=luck; expected is one of least-confidence"),
        ("#/nothing", "There is no view nothing: this is Tag."),
        ("#/trust?model=poor", "poor is not calibrated: run `vcrf calibrate MODEL DATA`"),
    ],
)
def test_odd_addresses_are_answered_kindly(browser: Browser, address: str, said: str) -> None:
    """What makes no sense is left out and said in words; the view is there, and the console is quiet."""
    browser.open(address)
    if "text=" in address:
        browser.wait("return document.querySelectorAll('.token, svg.lattice').length > 0")
    assert said in browser.text("main")
    for raw in ("undefined", "NaN", "null", "not a function", "position:", "allowed, token"):
        assert raw not in browser.text("main")


def test_reasons_say_what_is_forced(browser: Browser, corpus: Corpus) -> None:
    """From Tag to Why the forced label goes along, and the reasons are given it."""
    tokens = sentence(corpus)
    browser.open("#/tag?t=1&text=" + quote(" ".join(tokens)))
    browser.wait("return document.querySelectorAll('.posterior tbody tr').length === 5")
    second = browser.text(".posterior tbody tr:nth-child(2) th")
    browser.click(".posterior tbody tr:nth-child(2) td.acts button")
    browser.wait("return document.querySelectorAll('.sentences .token.bound').length === 1")
    forced = browser.texts(".sentences .tag")
    browser.run("[...document.querySelectorAll('a')].find((a) => a.innerText === 'Why this label?').click()")
    browser.wait("return document.querySelector('.headline')?.innerText.includes('no other label is possible')")
    assert browser.texts(".sentence .tag") == forced
    assert forced[1] == second
    assert "forced or forbidden at 1 token: these are the reasons given that" in browser.text("main")
    browser.run("[...document.querySelectorAll('nav a')].find((a) => a.innerText === 'Lattice').click()")
    browser.wait("return document.querySelector('.hint')?.innerText.includes('forced or forbidden at 1 token')")


def follow(browser: Browser, view: str) -> None:
    """Click the name of a view above, and wait until it is drawn."""
    browser.run("[...document.querySelectorAll('nav a')].find((a) => a.innerText === arguments[0]).click()", view)
    browser.wait(f"return document.querySelector('main .view h1')?.innerText === '{view}'")
    browser.ready()


def test_the_sentence_and_the_token_at_hand_go_along(browser: Browser, corpus: Corpus) -> None:
    """From view to view: not the first ones of the text."""
    tokens = sentence(corpus)
    browser.open("#/tag?s=1&t=2&text=" + quote("a b\n" + " ".join(tokens)))
    browser.wait("return !!document.querySelector('.token[aria-pressed=true]')")
    for view in ("Lattice", "Why", "Tag"):
        follow(browser, view)
        if view != "Lattice":
            browser.wait("return !!document.querySelector('.token[aria-pressed=true]')")
            assert browser.texts(".sentence .word") == tokens
            assert browser.text(".token[aria-pressed=true] .word") == tokens[2]


def test_a_long_text_loses_nothing_on_its_way(browser: Browser) -> None:
    """A sentence is carried whole; of many an address has as many as fit, and the page says so."""
    enter = """
        const box = document.getElementById("text");
        box.value = arguments[0];
        box.dispatchEvent(new Event("input"));
    """
    browser.open("#/tag")
    browser.run(enter, "abcdefgh " * 800)
    browser.wait("return document.querySelectorAll('.sentences .token').length === 800")
    follow(browser, "Lattice")
    browser.wait("return document.querySelectorAll('svg .word').length === 800")
    browser.open("#/tag")
    browser.run(enter, "abcdefghi\n" * 2500)
    browser.wait("return document.querySelectorAll('.sentences .token').length === 2500")
    assert "one that is shared has the first 2000 sentences" in browser.text("main")
    assert len(browser.run("return new URLSearchParams(location.hash).get('text')").split()) == 2000


def test_models_of_words_and_of_attributes_stand_side_by_side(driver: Any, converted: Path, good: Path) -> None:
    """Each begins with what it reads; neither is given the other's text or its forced labels."""
    from vcrf.web.models import Models, read_served

    service = Service(Models([read_served(good, "words"), read_served(converted, "old")]))
    listening = listen("127.0.0.1", 0)
    change = """
        const list = document.querySelector("#controls select");
        list.value = arguments[0];
        list.dispatchEvent(new Event("change"));
    """
    with serving(service, listening):
        page = Browser(driver, address_of(listening, "127.0.0.1"))
        page.open("#/tag?model=words&t=0&text=a+b&a=0.0:" + load(good).classes_[0])
        page.wait("return document.querySelectorAll('.token.bound').length === 1")
        page.run(change, "old")
        page.wait("return !!document.querySelector('.sentences .token') && location.hash.includes('model=old')")
        assert page.run("return new URLSearchParams(location.hash.split('?')[1]).get('a')") is None
        assert "\t" in page.run("return document.getElementById('text').value")
        page.open("#/tag?model=old&t=0")
        page.wait("return !!document.querySelector('.posterior')")
        page.click(".posterior tbody tr:nth-child(2) td.acts button")
        page.wait("return document.querySelectorAll('.token.bound').length === 1")
        for view in ("Why", "Lattice"):
            follow(page, view)
            page.wait("return document.querySelector('.hint')?.innerText.includes('forced or forbidden at 1 token')")
        for view in ("tag", "why", "lattice"):
            page.open(f"#/{view}?model=old&text=two+words")
            assert "This model reads attributes, not words: a token a line" in page.text("main")
        assert page.texts("nav a") == ["Tag", "Why", "Lattice", "Trust", "Training", "Families"]
        page.open("#/errors")
        assert "Errors is not shown here: it needs labelled sentences (--data FILE)." in page.text("main")
        assert page.complaints() == []


def test_tokens_are_reached_with_arrows(browser: Browser, corpus: Corpus) -> None:
    """The arrow keys go from token to token, and choose."""
    browser.open("#/tag?t=0&text=" + quote(" ".join(sentence(corpus))))
    browser.wait("return !!document.querySelector('.token[aria-pressed=true]')")
    browser.run("document.querySelector('.token[aria-pressed=true]').focus()")
    browser.keys("\ue014")  # right
    browser.wait("return document.activeElement.dataset.t === '1'")
    assert browser.run("return document.activeElement.getAttribute('aria-pressed')") == "true"


def test_text_is_never_markup(browser: Browser) -> None:
    """What is typed is shown as it is."""
    evil = "<img/src=x/onerror=document.title='hacked'> <script>alert(1)</script> ok"
    browser.open("#/tag?t=0&text=" + quote(evil))
    browser.wait("return document.querySelectorAll('.sentences .token').length === 3")
    assert browser.texts(".sentences .word") == evil.split(" ")
    assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
    assert browser.run("return document.title") != "hacked"


def test_why_adds_up(browser: Browser, corpus: Corpus) -> None:
    """Contributions are listed, and their sum is the difference."""
    browser.open("#/why?t=1&text=" + quote(" ".join(sentence(corpus))))
    browser.wait("return !!document.querySelector('.waterfall tfoot')")
    adds = [float(text.replace("−", "-")) for text in browser.texts(".waterfall tbody td:last-child")]
    total = float(browser.text(".waterfall tfoot td:last-child").replace("−", "-"))
    assert sum(adds) == pytest.approx(total, abs=0.01 * len(adds))
    assert "rather than" in browser.text(".headline")
    assert "the labels of its neighbours" in browser.texts(".waterfall .attribute")
    browser.click(".sentence .token[data-t='2']")
    browser.wait("return location.hash.includes('t=2')")


def test_lattice_has_a_node_for_each_best_label(browser: Browser, corpus: Corpus) -> None:
    """As many outlined nodes as tokens, and arcs between them."""
    tokens = sentence(corpus)
    browser.open("#/lattice?text=" + quote(" ".join(tokens)))
    browser.wait("return !!document.querySelector('svg.lattice')")
    assert browser.run("return document.querySelectorAll('.node.best').length") == len(tokens)
    assert browser.run("return document.querySelectorAll('.arc.best').length") == len(tokens) - 1
    browser.resize(1280, 800)
    browser.open("#/lattice?text=" + quote("the librarian will water " * 3))  # 12 words are seen at once
    assert browser.run("const card = document.querySelector('.scroll'); return card.scrollWidth <= card.clientWidth")
    assert browser.run("return document.querySelectorAll('svg .word')[1].firstChild.data") == "librarian"


def test_lattice_shortens_words_between_characters(browser: Browser) -> None:
    """Some characters are two halves for JavaScript."""
    for before in ("", "a"):
        browser.open("#/lattice?text=" + quote(before + "\N{GRINNING FACE}" * 30))
        shown = browser.run("return document.querySelector('svg .word').firstChild.data")
        assert shown.endswith("\N{GRINNING FACE}…")


def test_errors_lead_to_sentences_and_to_why(browser: Browser) -> None:
    """A cell of the matrix chooses its sentences; a sentence leads to its reasons."""
    browser.open("#/errors")
    assert len(browser.texts(".tiles .tile")) == 3
    everything = len(browser.texts(".tried"))
    told = browser.run("return document.querySelector('.cell').getAttribute('aria-label')")
    browser.click(".cell")
    browser.wait("return location.hash.includes('true=')")
    assert 0 < len(browser.texts(".tried")) <= everything
    true, predicted = told.split(" times ")[1].split(" labelled ")
    assert any(text.split() == [predicted, true] for text in browser.texts(".token.wrong .tag"))
    browser.click(".tried header a")
    browser.wait("return document.querySelector('h1').innerText === 'Why'")
    browser.ready()


def test_trust_follows_the_slider(browser: Browser) -> None:
    """The promise is that of the library for the place of the slider."""
    browser.open("#/trust")
    browser.run(
        "const range = document.querySelector('input[type=range]'); range.value = range.max; "
        "range.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    assert browser.text(".slider output") == "20.0 %"
    most = browser.text(".tile .big")
    assert "20 %" in browser.text(".headline")
    browser.run(
        "const range = document.querySelector('input[type=range]'); range.value = 0; "
        "range.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    assert float(browser.text(".tile .big").rstrip(" %")) <= float(most.rstrip(" %"))
    assert len(browser.texts("figure")) == 2


def test_training_draws_four_pictures(browser: Browser) -> None:
    """Objective with its bound, gap, features, development error."""
    browser.open("#/training")
    assert len(browser.texts("figure")) == 4
    assert "lower bound" in browser.run("return document.querySelector('svg.chart').getAttribute('aria-label')")


def test_training_is_drawn_while_it_runs(driver: Any) -> None:
    """Records appear one by one, and the end is told."""
    from vcrf.solvers.result import IterationRecord
    from vcrf.web.models import Models
    from vcrf.web.watching import LiveTraining

    live = LiveTraining("new", 1e-3)
    service, listening = Service(Models(), live=live), listen("127.0.0.1", 0)
    with serving(service, listening):
        page = Browser(driver, address_of(listening, "127.0.0.1"))
        driver.get("about:blank")
        driver.get(page.address)
        page.wait("return document.querySelector('.headline')?.innerText.includes('is being trained')")
        for n in (1, 2, 3):
            live.see(IterationRecord(n, 0.1 * n, 2.0, 1.0 / n, 0.0, 10 * n, n, "scan"))
        page.wait("return document.querySelectorAll('figure').length === 3")
        assert page.texts("nav a") == ["Training"]
        live.end("The relative duality gap is below the tolerance.")
        page.wait("return document.querySelector('.headline').innerText.includes('below the tolerance')")
        assert page.complaints() == []


def test_compare_has_a_verdict(browser: Browser) -> None:
    """Both models with rates, a test, and sentences that differ."""
    browser.open("#/compare")
    assert len(browser.texts(".tiles .tile")) == 3
    assert "luck" in browser.text(".headline")
    assert browser.texts(".twins .tried header .hint")[:2] == ["good", "poor"]
    sides = "return [...document.querySelector('.twins').querySelectorAll('.tried')].map((side) => "
    marked = browser.run(sides + "[...side.querySelectorAll('.token.differs')].map((e) => e.dataset.t))")
    assert marked[0] == marked[1] != []


def test_families_and_bounds(browser: Browser) -> None:
    """Families with their weights, features of a label, and bounds when asked for."""
    browser.open("#/families")
    assert "bias" in browser.texts("table tbody th")
    browser.run("[...document.querySelectorAll('button')].find((b) => b.innerText === 'Compute the bounds').click()")
    browser.wait("return document.querySelector('[aria-label=Bounds] tbody tr')", 120)


def test_label_keeps_every_answer(browser: Browser, pool_file: Path) -> None:
    """Keys choose labels, Enter saves to the file, a draft survives the page, and training takes the answers in."""
    browser.open("#/label")
    browser.wait("return !!document.querySelector('.workbench')")
    browser.run("document.querySelector('.workbench').focus()")
    before = browser.texts(".workbench .tag")
    at = int(browser.run("return document.querySelector('.workbench [aria-pressed=true]').dataset.t"))
    browser.keys("2")
    browser.wait("return document.querySelectorAll('.workbench .token.bound').length === 1")
    changed = browser.texts(".workbench .tag")
    assert [t for t, (a, b) in enumerate(zip(before, changed, strict=True)) if a != b] == [at]
    browser.run("document.querySelector('.workbench .token').focus()")
    browser.keys("\ue014", "\ue014")  # from one token to the next, one at a time
    browser.wait("return document.querySelector('.workbench .token[aria-pressed=true]').dataset.t === '2'")
    browser.open("#/label")  # as if the browser had died
    browser.wait("return document.querySelectorAll('.workbench .token.bound').length === 1")
    words = browser.texts(".workbench .word")
    browser.run("document.querySelector('.workbench').focus()")
    browser.keys("\ue007")  # Enter
    browser.wait("return document.querySelector('.tile .big').innerText === '1'")
    written = pool_file.read_text("utf-8").splitlines()
    assert [line.split("\t")[1::2][:2] for line in written if "\t" in line] == [
        list(pair) for pair in zip(words, changed, strict=True)
    ]
    browser.run("[...document.querySelectorAll('button')].find((b) => b.innerText === 'Retrain').click()")
    browser.wait("return document.querySelector('.state').innerText.startsWith('Trained on 1 answers')", 120)
    assert pool_file.with_suffix(".vcrf").exists()
    # The new model can be chosen at once.
    browser.wait("return [...document.querySelectorAll('#controls option')].some((o) => o.value === 'retrained')")


def test_two_tabs_label_different_sentences(browser: Browser) -> None:
    """The second is not given what the first has; what is left for later does not come back at once."""
    browser.open("#/label")
    browser.wait("return !!document.querySelector('.workbench')")
    seen, first = [], browser.driver.current_window_handle
    for _ in range(7):
        seen.append(browser.texts(".workbench .word"))
        browser.keys("s")
        browser.wait(
            "return JSON.stringify([...document.querySelectorAll('.workbench .word')].map((e) => e.innerText)) "
            f"!== {json.dumps(json.dumps(seen[-1], ensure_ascii=False, separators=(',', ':')))}"
        )
    assert len({tuple(words) for words in seen}) == 7
    browser.driver.switch_to.new_window("tab")
    try:
        browser.open("#/label")
        browser.wait("return !!document.querySelector('.workbench')")
        assert browser.texts(".workbench .word") not in seen
        assert "another tab" not in browser.text(".workbench")
    finally:
        browser.driver.close()
        browser.driver.switch_to.window(first)


def test_a_service_that_has_died_loses_nothing(driver: Any, models: Any, corpus: Corpus, tmp_path: Path) -> None:
    """Export, saving and later say so; the sentence and its labels stay on the page."""
    from vcrf.web.models import Models

    own, path = Models(list(models)), tmp_path / "answers.conllu"
    annotating = Annotating(own, [(tokens, "p:1") for tokens in corpus.tokens[60:62]], path)
    annotating.answer(corpus.tokens[60], corpus.labels[60])
    kept, listening = path.read_bytes(), listen("127.0.0.1", 0)
    with serving(Service(own, annotating=annotating), listening):
        page = Browser(driver, address_of(listening, "127.0.0.1"))
        page.open("#/label")
        page.wait("return !!document.querySelector('.workbench')")
        page.run("document.querySelector('.workbench').focus()")
        page.keys("2")
        labels = page.texts(".workbench .tag")
    page.run("[...document.querySelectorAll('button')].find((b) => b.innerText === 'Export CoNLL-U').click()")
    page.wait("return document.querySelector('.state').innerText.includes('safe in answers.conllu')")
    for key, said in {"s": "does not answer", "\ue007": "Not saved"}.items():
        page.run("document.querySelector('.workbench').focus()")
        page.keys(key)
        page.wait(f"return document.querySelector('.state').innerText.includes('{said}')")
    assert page.texts(".workbench .tag") == labels
    assert path.read_bytes() == kept
    assert all("ERR_CONNECTION_REFUSED" in said for said in page.complaints())


@pytest.mark.parametrize("view", VIEWS)
def test_views_fit_every_size_and_scheme(browser: Browser, view: str, corpus: Corpus) -> None:
    """Nothing sticks out of a phone, a tablet or a desk, in light and in dark."""
    for width, height in SIZES:
        browser.resize(width, height)
        browser.open(f"#/{view}?t=1&text=" + quote(" ".join(sentence(corpus))))
        for scheme in ("light", "dark"):  # the page follows the system without being loaded again
            browser.resize(width, height, scheme)
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), (view, width)
            dark = browser.run("return getComputedStyle(document.documentElement).getPropertyValue('--is-dark').trim()")
            assert dark == str(int(scheme == "dark"))
    browser.resize(1280, 800)


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of axe-core, from npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm to get axe-core with")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--fetch-retries=0", "axe-core@4"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm does not answer, so that there is no axe-core")
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if done.returncode or not script.exists():
        pytest.skip("npm cannot get axe-core here")
    return script.read_text("utf-8")


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_accessible(browser: Browser, axe: str, view: str, corpus: Corpus) -> None:
    """axe-core has no serious finding: names, roles, order, and contrast in both schemes."""
    browser.resize(1280, 800)
    browser.open(f"#/{view}?t=1&text=" + quote(" ".join(sentence(corpus))))
    # Through the debugger: the policy of the page lets no other script in.
    browser.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
    serious = findings(browser, "{}")
    browser.resize(1280, 800, "dark")
    serious += findings(browser, "{ runOnly: ['color-contrast', 'link-in-text-block'] }")
    browser.resize(1280, 800)
    assert serious == []


def findings(browser: Browser, options: str) -> list[tuple[str, str, str]]:
    """What axe-core calls serious or critical."""
    script = f"axe.run({options}).then((result) => arguments[0](result.violations))"
    return [
        (item["id"], item["nodes"][0]["html"][:200], item["nodes"][0].get("failureSummary", "")[:300])
        for item in browser.driver.execute_async_script(script)
        if item["impact"] in ("serious", "critical")
    ]


def test_a_token_opens_the_page(driver: Any, models: Any) -> None:
    """The address that is printed has the token; without it the page says what is missing."""
    secret = "50%25#?&/+secret"
    service, listening = Service(models, token=secret), listen("127.0.0.1", 0)
    with serving(service, listening):
        page = Browser(driver, address_of(listening, "127.0.0.1", secret))
        page.open()
        assert "secret" not in page.run("return location.href")
        other = Browser(driver, address_of(listening, "localhost"))
        driver.get(other.address)
        other.wait("return document.querySelector('main').innerText.includes('asks for its token')")
        other.complaints()  # the browser notes the 401 itself


def test_a_page_without_a_service(driver: Any, browser: Browser, good: Path, corpus: Corpus, tmp_path: Path) -> None:
    """`tagger.render` works from a file, and in the frame of a notebook, with a policy of its own."""
    page = load(good).render(sentence(corpus))
    page.save(tmp_path / "page.html")
    driver.get((tmp_path / "page.html").as_uri())
    browser.wait("return document.querySelectorAll('.token').length > 0")
    browser.run("[...document.querySelectorAll('nav a')].find((a) => a.innerText === 'Why').click()")
    browser.wait("return !!document.querySelector('.waterfall tfoot')")
    browser.run("[...document.querySelectorAll('nav a')].find((a) => a.innerText === 'Lattice').click()")
    browser.wait("return !!document.querySelector('svg.lattice')")
    (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{page._repr_html_()}</body>", encoding="utf-8")
    driver.get((tmp_path / "notebook.html").as_uri())
    driver.switch_to.frame(0)
    browser.wait("return document.querySelectorAll('.token').length > 0")
    browser.run("[...document.querySelectorAll('nav a')].find((a) => a.innerText === 'Why').click()")
    browser.wait("return !!document.querySelector('.waterfall tfoot')")
    driver.switch_to.default_content()


def test_the_report_of_an_evaluation(
    driver: Any, browser: Browser, good: Path, treebank: Path, tmp_path: Path
) -> None:  # fmt: skip
    """`vcrf eval --html` has errors, trust, training and families in one file."""
    from commands import Call

    Call()("eval", good, treebank, "--split", "test", "--html", tmp_path / "report.html")
    driver.get((tmp_path / "report.html").as_uri())
    browser.wait("return document.querySelectorAll('.tried').length > 0")
    n = len(browser.texts(".tried"))
    browser.click(".cell")
    assert 0 < len(browser.texts(".tried")) <= n
    for name, wanted in {"Trust": "figure", "Training": "figure", "Families": "table"}.items():
        browser.run("[...document.querySelectorAll('nav a')].find((a) => a.innerText === arguments[0]).click()", name)
        browser.wait(
            f"return document.querySelector('h1').innerText === '{name}' && !!document.querySelector('{wanted}')"
        )


def test_first_paint_is_quick(browser: Browser) -> None:
    """The frame of the page is painted before anything is asked for; generous, for a busy machine."""
    browser.open()
    paint: Callable[[], Any] = lambda: browser.run(  # noqa: E731
        "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
    )
    browser.wait("return performance.getEntriesByName('first-contentful-paint').length > 0")
    assert paint() < 5000, json.dumps(paint())
