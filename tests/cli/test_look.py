"""`vcrf show`, `explain`, `info` and `demo`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from commands import Call, environment
from hostile import Parts
from vcrf import VCRF
from vcrf.arguments import running
from vcrf.cli import demo, theory
from vcrf.cli.compiling import Beside
from vcrf.compat import CRF
from vcrf.data import small_english
from vcrf.labelling.drawing import sentence_svg
from vcrf.labelling.explain import explain
from vcrf.labelling.loading import load_tagger
from vcrf.model.file import load_model


def test_show_tells_families_facts_and_features(model: Path, call: Call) -> None:
    """The JSON agrees with the model."""
    found = json.loads(call("show", model, "--json", "--top", 3).stdout)
    loaded = load_model(model)
    assert [f["name"] for f in found["families"]] == [f.name for f in loaded.families]
    assert sum(f["n_active"] for f in found["families"]) == found["n_weights"] == len(loaded.weights)
    assert found["families"][1]["strength"] == pytest.approx(0.02)
    assert found["training"]["relative_gap"] <= 1e-3
    assert found["training"]["n_sentences"] == 60
    assert found["parameters"]["base_strength"] == 0.02
    assert set(found["features"]) == set(loaded.labels)
    by_label = {label: [f for f in loaded.features() if f.labels[-1] == label] for label in loaded.labels}
    for label, features in found["features"].items():
        heaviest = sorted((abs(f.weight) for f in by_label[label]), reverse=True)[:3]
        assert [abs(f["weight"]) for f in features] == heaviest


def test_show_tells_the_parameters_in_force(model: Path, call: Call) -> None:
    """Given or of the recipe; a vote, or an old file, has none."""
    found = json.loads(call("show", model, "--json").stdout)
    assert found["parameters"]["recipe"] == "paper"
    assert found["in_force"] == {
        "complexity_strength": 0.0, "base_strength": 0.02, "norm": "l1", "l1_ratio": 0.5, "count_power": 0.0,
        "factors": False, "loss": None, "temperature": 1.0, "tol": 1e-3,
    }  # fmt: skip
    text = call("show", model).stdout
    for name, value in {**found["in_force"], "recipe": "paper"}.items():
        assert re.search(rf"{name}\s+{re.escape(str(value))}\b", text)
    CRF().fit([[{"w": "a"}]], [["X"]]).save(model.parent / "crf.vcrf")
    assert json.loads(call("show", model.parent / "crf.vcrf", "--json").stdout)["in_force"] == {}


def test_show_one_label(model: Path, call: Call) -> None:
    """Only its features; an unknown one is refused with those that there are."""
    label = str(load_model(model).labels[0])
    assert list(json.loads(call("show", model, "--label", label, "--json").stdout)["features"]) == [label]
    text = call("show", model, "--label", label).stdout
    assert f"label {label}" in text
    assert "complexity" in text
    assert f"one of {label}," in call("show", model, "--label", "nonsense", code=2).stderr


def test_show_a_model_without_facts(model: Path, call: Call, tmp_path: Path) -> None:
    """A file may be older than the facts of training."""
    parts = Parts(model.read_bytes())
    del parts.document["facts"]
    (tmp_path / "old.vcrf").write_bytes(parts.assemble())
    assert "unknown" in call("show", tmp_path / "old.vcrf").stdout
    assert json.loads(call("show", tmp_path / "old.vcrf", "--json").stdout)["training"] == {"relative_gap": None}


@pytest.mark.parametrize("name", ["estimator", "parameters"])
def test_show_refuses_half_a_file(model: Path, call: Call, tmp_path: Path, name: str) -> None:
    """What it prints has to be there."""
    parts = Parts(model.read_bytes())
    del parts.document[name]
    (tmp_path / "half.vcrf").write_bytes(parts.assemble())
    assert f"'{name}' is missing" in call("show", tmp_path / "half.vcrf", code=2).stderr


@pytest.mark.parametrize(
    "command", [("show",), ("show", "--json"), ("explain", "lu zu"), ("explain", "lu zu", "--json")]
)
def test_labels_that_are_no_text_are_refused(model: Path, call: Call, tmp_path: Path, command: tuple[str, ...]) -> None:
    """A lone surrogate could not be printed."""
    parts = Parts(model.read_bytes())
    data, offsets = parts.tensors["labels.bytes"], parts.tensors["labels.offsets"]
    parts.tensors["labels.bytes"] = np.concatenate([np.frombuffer(b"\xed\xb2\x80", np.uint8), data[offsets[1] :]])
    offsets[1:] += 3 - offsets[1]
    (tmp_path / "odd.vcrf").write_bytes(parts.assemble())
    assert "lone surrogate" in call(command[0], tmp_path / "odd.vcrf", *command[1:], code=2).stderr


def test_explain_refuses_what_is_no_text(model: Path, call: Call) -> None:
    """Python gives lone surrogates for arguments that are not UTF-8."""
    assert "expected UTF-8" in call("explain", model, "lu \udce9", code=2).stderr


def test_explain_sums_to_the_difference(model: Path, call: Call) -> None:
    """The labels are those of `tag`, and the contributions add up."""
    found = json.loads(call("explain", model, "lu  zu\tma", "--json").stdout)["tokens"]
    assert [token["token"] for token in found] == ["lu", "zu", "ma"]
    assert [token["label"] for token in found] == load_tagger(model).predict([["lu", "zu", "ma"]])[0]
    for token in found:
        assert sum(c["value"] for c in token["contributions"]) == pytest.approx(token["difference"])
        assert sum(token["families"].values()) == pytest.approx(token["difference"])
        assert token["difference"] >= 0.0
    text = call("explain", model, "lu zu", "--top", 1).stdout
    assert "Why is “lu”" in text
    assert "smaller reason" in text
    assert "all together" in text
    assert "bias" not in text
    assert call("explain", model, "lu zu", "--top", 0).stdout.count("\n") == 2


def test_explain_takes_a_sentence_and_no_file(model: Path, call: Call, tmp_path: Path) -> None:
    """The name of a file that is there is no sentence; of one that is not it may be a word."""
    text = tmp_path / "new.txt"
    text.write_text("lu zu\n")
    assert f"{text} is a file, and `vcrf explain` takes one sentence" in call("explain", model, text, code=2).stderr
    assert "Why is “new.txt”" in call("explain", model, "new.txt").stdout


def test_explain_needs_a_token(model: Path, call: Call) -> None:
    """Exit code 2."""
    assert "expected a sentence" in call("explain", model, " ", code=2).stderr


def test_info(call: Call) -> None:
    """Versions, threads, and the kernels on disk."""
    found = json.loads(call("info", "--json").stdout)
    assert set(found) == {"versions", "machine", "kernels"}
    assert found["machine"]["threads"] >= 1
    assert 0 < found["kernels"]["compiled"] <= found["kernels"]["kernels"]
    assert all(Path(directory).is_dir() for directory in found["kernels"]["directories"])
    assert "numba" in call("info").stdout


def test_kernels_are_compiled_ahead(call: Call, model: Path) -> None:
    """After `info --compile` what tags has nothing to compile, and neither has what trains by default."""
    done = call("info", "--compile", "--json")
    assert json.loads(done.stdout)["kernels"]["compiled"] > 50
    code = (
        "from vcrf import kernels, VCRF\nfrom vcrf.data import SyntheticLanguage\n"
        "corpus = SyntheticLanguage(n_labels=4, n_stems=50).sample(30, seed=2)\n"
        "with kernels.compiling.watch_compiling(lambda: None) as spent:\n"
        "    tagger = VCRF().fit(corpus.tokens, corpus.labels)\n"
        "    tagger.predict_marginals(corpus.tokens)\n"
        "print(spent.seconds)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert float(found.stdout) == 0.0
    assert "Prepar" not in call("tag", model, given="a b\n").stderr


def test_explain_draws_the_sentence(model: Path, call: Call, tmp_path: Path) -> None:
    """As SVG, whatever is installed; other names are refused before any work."""
    picture = tmp_path / "sentence.svg"
    call("explain", model, "a b", "--plot", picture)
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    refused = call("explain", model, "a b", "--plot", tmp_path / "sentence.png", code=2)
    assert "ends in .svg, got '.png'" in refused.stderr


@pytest.fixture
def short_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """On fewer sentences than the real one."""
    for name, number in (("N_TRAIN", 60), ("N_HELD_OUT", 40), ("N_TEST", 20)):
        monkeypatch.setattr(demo, name, number)


@pytest.mark.usefixtures("short_demo")
def test_demo_writes_a_model_and_a_picture(tmp_path: Path, call: Call) -> None:
    """And says what everything means, without words of the trade."""
    done = call("demo", "-o", tmp_path / "new" / "dir")
    text = done.stdout
    assert "gap" not in done.stderr
    for words in (
        "vcrf as it comes",
        "CRFsuite",
        "the research behind vcrf",
        "smaller reasons together",
        "with 95 % confidence, for all sentences of this kind",
        "at the most",
        "Why is “",
        "it accepts",
        "vcrf train my.conllu",
    ):
        assert words in text
    for trade in ("duality", "marginal", "posterior", "Viterbi", "regularis"):
        assert trade not in text.replace("--marginals", "")
    assert load_model(tmp_path / "new" / "dir" / "demo.vcrf").n_labels > 1
    assert "Why is “" in (tmp_path / "new" / "dir" / "demo.svg").read_text(encoding="utf-8")


def test_the_picture_of_the_docs_is_that_of_the_demo() -> None:
    """After a change of what is learned or drawn: copy the demo.svg of `vcrf demo` to docs/sentence.svg."""
    corpus = small_english(demo.N_TRAIN + demo.N_HELD_OUT)
    training, held_out = corpus[: demo.N_TRAIN], corpus[demo.N_TRAIN :]
    tagger = VCRF().fit(training.tokens, training.labels).calibrate(held_out.tokens, held_out.labels)
    kept = (Path(__file__).parents[2] / "docs" / "sentence.svg").read_text(encoding="utf-8")
    drawn = sentence_svg(explain(tagger, demo.SENTENCE.split()))
    # Not the lengths of bars, and no order of equals: another processor may round otherwise.
    assert sorted(re.findall(r">([^<]+)</text>", drawn)) == sorted(re.findall(r">([^<]+)</text>", kept))


def test_commands_are_those_that_a_user_can_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By its name where the shell finds it, by its path in another environment."""
    own = tmp_path / "bin" / "vcrf"
    monkeypatch.setattr(sys, "argv", [str(own), "demo"])
    monkeypatch.setattr(demo.shutil, "which", lambda _: str(own))
    assert demo.program() == "vcrf"
    monkeypatch.setattr(sys, "argv", [".venv/bin/vcrf", "demo"])
    assert demo.program() == ".venv/bin/vcrf"
    monkeypatch.setattr(sys, "argv", ["/x/vcrf/__main__.py", "demo"])
    assert demo.program() == "vcrf"
    monkeypatch.setattr(demo.shutil, "which", lambda _: None)
    assert demo.program() == f"{sys.executable} -m vcrf"


def test_another_process_compiles_what_the_demo_needs_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a second core; it ends with the demo, and knows all that is asked of it."""
    monkeypatch.setattr(running, "n_threads", lambda _: 2)
    beside = Beside("time:sleepy_name_that_is_not_there")
    beside.start()
    assert beside._process is not None
    assert beside._process.wait() == 1
    beside.end()
    waits = Beside("vcrf.cli.demo:compile_rest")
    waits.start()
    waits.end()
    assert waits._process is not None
    assert waits._process.returncode is not None
    monkeypatch.setattr(running, "n_threads", lambda _: 1)
    alone = Beside("vcrf.cli.demo:compile_rest")
    alone.start()
    assert alone._process is None
    alone.end()
    demo.compile_rest()


def test_demo_says_when_nothing_can_be_promised() -> None:
    """Too few sentences."""
    assert "accepts none" in demo._kept(0, 0, 100)
    assert demo._kept(50, 1, 100) == "Of the 100 test words it accepts 50 (50 %); 1 of these are wrong (2.0 %)."


@pytest.fixture
def short_theory(monkeypatch: pytest.MonkeyPatch) -> None:
    """On fewer sentences than the real one."""
    monkeypatch.setattr(theory, "N_TRAIN", 40)
    monkeypatch.setattr(theory, "N_TEST", 10)


@pytest.mark.usefixtures("short_theory")
def test_theory_is_one_option_away(tmp_path: Path, call: Call) -> None:
    """The comparison of the paper and the bounds."""
    text = call("demo", "--theory", "-o", tmp_path).stdout
    for word in ("L1-CRF", "VCRF", "relative gap", "bound"):
        assert word in text
    assert load_model(tmp_path / "theory.vcrf").n_labels > 1
    assert (tmp_path / "theory.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("short_theory")
def test_theory_goes_on_without_matplotlib(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    result = call("demo", "--theory", "-o", tmp_path)
    assert "pip install '.[plots]'" in result.stderr
    assert (tmp_path / "theory.vcrf").exists()
