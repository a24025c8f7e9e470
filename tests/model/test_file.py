"""The model file: what is saved comes back, whatever else is refused."""

from __future__ import annotations

import copy
import errno
import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import corpora
import vcrf
from hostile import Parts, damaged, forged, frame
from vcrf import VCRF, load, losses, read_corpus
from vcrf.cli.trees import is_tree_model
from vcrf.compat import CRF
from vcrf.decoding.constraints import Constraints, as_constraints
from vcrf.errors import InputError, NotFittedError
from vcrf.estimators import file as estimator_file
from vcrf.families import BIAS, Family, NamedFeature, Template
from vcrf.kernels.compiling import watch_compiling
from vcrf.labelling.explain import explain
from vcrf.labelling.loading import load_tagger
from vcrf.model import Model, container
from vcrf.model import file as model_file
from vcrf.model.json import dump_params, load_params
from vcrf.solvers.result import Status
from vcrf.strings import StringList

X = [["the", "cat", "sleeps"], ["a", "dog", "sees", "the", "cat"], ["dogs", "sleep"]]
Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB", "DET", "NOUN"], ["NOUN", "VERB"]]
DICTS = [[{"w": word, "n": len(word) / 4, "é": {"last": word[-1]}} for word in sentence] for sentence in X]


def trained(estimator, data, labels=Y):
    """Fit; how far the solver came does not matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(data, labels)


@pytest.fixture(scope="module")
def words():
    """A tagger of tokens, order 3."""
    return trained(VCRF(recipe="paper", norm="l2", base_strength=0.005, tags=3, words=1, affix=1), X)


@pytest.fixture(scope="module")
def dicts():
    """A CRF on feature dicts."""
    return trained(CRF(c1=0.01, c2=0.01), DICTS)


@pytest.fixture(scope="module")
def content(words):
    """The file of `words`."""
    return estimator_file.to_bytes(words)


def assert_same(loaded, saved, data):
    """Everything that can be asked for is the same, to the last bit."""
    assert type(loaded) is type(saved)
    assert loaded.get_params() == saved.get_params()
    assert loaded.classes_ == saved.classes_
    assert list(map(type, loaded.classes_)) == list(map(type, saved.classes_))
    assert loaded.predict(data) == saved.predict(data)
    assert loaded.predict_marginals(data) == saved.predict_marginals(data)
    assert loaded.predict_kbest(data, 3) == saved.predict_kbest(data, 3)
    assert loaded.sample(data, 2, random_state=1) == saved.sample(data, 2, random_state=1)
    assert list(loaded.model_.features()) == list(saved.model_.features())
    assert loaded.model_.facts == saved.model_.facts
    assert loaded.model_.families == saved.model_.families
    names = ["objective_", "gap_", "status_"]
    if isinstance(saved, VCRF):
        names += ["kkt_violation_", "n_active_", "n_candidates_", "n_columns_", "families_", "history_"]
    for name in names:
        assert getattr(loaded, name) == getattr(saved, name), name


# ------------------------------------------------------------------------------------ round trips

ODD = ["", " ", "B-X", "a\nb", "\x00", "é", "世界", "😀", "\\u0041", '"', "True", "1", "__class__"]
label_lists = st.one_of(
    st.lists(st.sampled_from(ODD), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from([0, 1, -7, 2**70]), min_size=1, max_size=3, unique=True),
    st.just([False, True]),
)


@st.composite
def estimators_of_tokens(draw):
    """VCRF with a preset or with families of its own."""
    tags = draw(st.integers(1, 3))
    options = {
        "recipe": "paper",
        "base_strength": draw(st.sampled_from([0.1, 0.01, 0.001])),
        "norm": draw(st.sampled_from(["l1", "l2", "elastic"])),
        "complexity_strength": draw(st.sampled_from([None, 0.01])),
        "candidates": draw(st.sampled_from(["all", "observed"])),
    }
    kind = draw(st.sampled_from(["default", "paper", "own"]))
    if kind == "own":
        templates = draw(st.lists(corpora.templates, min_size=1, max_size=3, unique=True))
        families = [Family(f"own {i}", (template,), tags, 1.0 + i) for i, template in enumerate(templates)]
        return VCRF(families=families, **options)
    return VCRF(families=kind, tags=tags, words=1, affix=1, **options)


def draw_labels(data, sentences):
    """One label a token, of a few."""
    names = data.draw(label_lists)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    return [[names[i] for i in rng.integers(0, len(names), len(sentence))] for sentence in sentences]


round_trips = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])


@given(st.data(), estimators_of_tokens(), corpora.odd_sentences.filter(any))
@round_trips
def test_a_tagger_of_tokens_comes_back(tmp_path_factory, data, estimator, sentences):
    """Order 1 to 3, all presets and drawn templates, odd words and labels."""
    path = tmp_path_factory.getbasetemp() / "tokens.vcrf"
    fitted = trained(estimator.set_params(max_passes=20), sentences, draw_labels(data, sentences))
    fitted.save(path)
    assert_same(vcrf.load(path), fitted, [*sentences, ["unseen", "a"], []])


@given(st.data(), st.booleans(), st.integers(1, 3), corpora.dict_sentences.filter(any))
@round_trips
def test_a_tagger_of_dicts_comes_back(tmp_path_factory, data, is_crf, tags, sentences):
    """Both estimators, with numbers and several values a feature."""
    path = tmp_path_factory.getbasetemp() / "dicts.vcrf"
    estimator = (
        CRF(c1=0.01, max_iterations=20)
        if is_crf
        else VCRF(recipe="paper", tags=tags, base_strength=0.01, max_passes=20)
    )
    fitted = trained(estimator, sentences, draw_labels(data, sentences))
    fitted.save(path)
    loaded = vcrf.load(path)
    assert_same(loaded, fitted, [*sentences, [{"unseen": "x"}]])
    if is_crf:
        assert loaded.state_features_ == fitted.state_features_
        assert loaded.transition_features_ == fitted.transition_features_


def test_labels_of_both_kinds_in_one_model(tmp_path):
    """The stand-in for sklearn-crfsuite takes them."""
    fitted = trained(CRF(c1=0.01), DICTS[:1], [["1", 1, "True"]])
    fitted.save(tmp_path / "m.vcrf")
    assert vcrf.load(tmp_path / "m.vcrf").classes_ == ["1", 1, "True"]


def test_parameters_come_back_but_not_the_users_objects(tmp_path):
    """Families and mappings are rebuilt; a callback and a generator are left out."""
    sources = (Template(((0, "word"),)), Template(((-1, "suffix:2"),), pad=True))
    families = [Family("word", sources), Family("bias", (BIAS,))]
    fitted = trained(
        VCRF(
 recipe="paper",
            families=families, complexities={"word": np.float64(2.0), "bias": 0.5}, base_strength=np.float32(0.25),
            complexity_strength=0.01, max_passes=np.int64(30), callback=lambda _: None,
            random_state=np.random.default_rng(3), n_jobs=1, verbose=np.False_, norm=np.str_("l1"),
        ),
        X,
    )  # fmt: skip
    fitted.save(tmp_path / "m.vcrf")
    params = vcrf.load(tmp_path / "m.vcrf").get_params()
    assert params == fitted.get_params() | {"callback": None, "random_state": None}
    assert type(params["base_strength"]) is float
    assert type(params["max_passes"]) is int
    assert params["verbose"] is False


@pytest.mark.parametrize(
    "loss",
    [
        losses.HammingLoss(normalised=False, cost=2.0),
        losses.EditLoss(insertion=np.array([1.0, 2.0]), substitution=np.array([[0.0, 1.0], [3.0, 0.0]]), cap=3.0),
        losses.AlignedNgramLoss(n=3) + 0.5 * losses.EditLoss(band=None),
        losses.WeightedHammingLoss({"A": 2.0}),
        losses.WeightedHammingLoss({("A", "B"): np.float64(3.0)}, normalised=False),
        losses.MarkovLoss(1, 1.0 - np.eye(2)),
        losses.ZeroOneLoss(),
        losses.SmithWatermanLoss(match=3.0),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_a_loss_comes_back(loss):
    """Through JSON text: class, parameters and values are the same."""
    stored = json.loads(json.dumps(dump_params({"loss": loss})))
    again = load_params(stored, {"loss"})["loss"]
    assert type(again) is type(loss)
    ours, theirs = loss.for_labels(["A", "B"]), again.for_labels(["A", "B"])
    for y in itertools.product(range(2), repeat=4):
        assert theirs(y, (0, 1, 1, 0)) == ours(y, (0, 1, 1, 0))


def test_a_loss_without_a_written_form_is_left_out_with_a_word(tmp_path):
    """A function cannot be stored: save says so, and the model is whole."""
    fitted = trained(
        VCRF(recipe="paper", loss=losses.MarkovLoss(1, lambda _, a, b: float(a != b)), base_strength=0.1, norm="l1"), X
    )
    with pytest.warns(UserWarning, match="MarkovLoss cannot be written"):
        fitted.save(tmp_path / "m.vcrf")
    loaded = vcrf.load(tmp_path / "m.vcrf")
    assert loaded.loss == "auto"
    assert loaded.predict(X) == fitted.predict(X)


@pytest.mark.parametrize(
    "stored",
    [
        {"class": "os.system"},
        {"class": "EditLoss", "band": -1},
        {"class": "EditLoss", "colour": 1},
        {"class": "SumLoss", "losses": 3},
        {"class": "ScaledLoss", "loss_": 1},
        {"class": "WeightedHammingLoss", "costs": {"array": ["x"]}},
        {"class": ["EditLoss"]},
        {"class": "ScaledLoss", "loss": 1, "factor": 1.0},
        [],
    ],
)
def test_a_stored_loss_that_does_not_fit_is_refused(stored):
    """Nothing but our classes with their own parameters is built."""
    with pytest.raises(InputError):
        load_params({"loss": {"loss": stored}}, {"loss"})


def test_numbers_that_are_not_finite_come_back(tmp_path):
    """A strength of 0 leaves the gap infinite; a family of infinite complexity is switched off."""
    options = {"max_passes": 5, "families": [Family("bias", (BIAS,)), Family("word", (Template(((0, "word"),)),))]}
    free = trained(VCRF(recipe="paper", base_strength=0.0, **options), X)
    free.save(tmp_path / "m.vcrf")
    assert free.gap_ == np.inf
    assert vcrf.load(tmp_path / "m.vcrf").gap_ == np.inf
    json.loads(json.dumps(model_file.read_facts(tmp_path / "m.vcrf"), allow_nan=False))


def test_a_file_of_format_1_reads_as_it_always_did():
    """The file was written once: when this fails, files of users fail. A change of keys needs a new version."""
    golden = vcrf.load(Path(__file__).parent / "golden" / "format-1.vcrf")
    assert golden.predict([["mira", "tolu", "kens"], ["vor"], ["kens", "mira"]]) == [["A", "B", "C"], ["D"], ["C", "A"]]
    np.testing.assert_allclose(golden.predict_marginals([["tolu"]])[0][0]["B"], GOLDEN_MARGINAL, rtol=1e-6)
    assert golden.objective_ == GOLDEN_OBJECTIVE


GOLDEN_MARGINAL = 0.9476721328352532
GOLDEN_OBJECTIVE = 0.24008052623023984


def _tables():
    return {*model_file.ARRAYS, *model_file.STRINGS, *model_file.JSON, *model_file.TENSORS}


def test_every_field_of_a_model_is_in_a_table():
    """A field that is added to Model must be saved."""
    assert _tables() == {field.name for field in fields(Model)}


def test_a_field_with_a_default_may_be_missing(content):
    """Files older than a field stay readable; other fields are asked for."""
    parts = Parts(content)
    del parts.document["facts"]
    assert estimator_file.from_buffer(parts.assemble(), "m").model_.facts is None
    del parts.document["sources"]
    with pytest.raises(InputError, match="'sources' is missing"):
        estimator_file.from_buffer(parts.assemble(), "m")


# ------------------------------------------------------------------------------------ the file


def test_the_library_reads_the_file(words, tmp_path):
    """It is a safetensors file like any other."""
    path = tmp_path / "m.vcrf"
    words.save(path)
    tensors = load_file(path)
    np.testing.assert_array_equal(tensors["weights"], words.model_.weights)
    names = StringList(tensors["names.bytes"], tensors["names.offsets"])
    assert list(names) == list(words.model_.names)


def test_two_trainings_differ_in_their_seconds_alone(tmp_path):
    """And in the parameter `n_jobs`, if that is another."""
    found = []
    for n_jobs in (1, 2):
        path = tmp_path / f"{n_jobs}.vcrf"
        trained(VCRF(n_jobs=n_jobs), X).save(path)
        document = model_file.read_facts(path)
        del document["parameters"]["n_jobs"], document["facts"]["seconds"]
        for record in document["facts"]["history"]:
            del record["seconds"]
        tensors = load_file(path)
        del tensors["document_sha256"]
        found.append((document, {name: (array.dtype, array.tobytes()) for name, array in tensors.items()}))
    assert found[0] == found[1]


def test_two_saves_give_the_same_bytes(words, dicts, tmp_path):
    """Also when the model was loaded in between."""
    for fitted in (words, dicts):
        one, two = tmp_path / "one.vcrf", str(tmp_path / "two.vcrf")
        fitted.save(one)
        fitted.save(two)
        assert one.read_bytes() == Path(two).read_bytes()
        vcrf.load(one).save(one)
        assert one.read_bytes() == Path(two).read_bytes()


def test_facts_are_read_without_the_tensors(words, tmp_path):
    """A damaged tensor does not keep the facts from being read."""
    path = tmp_path / "m.vcrf"
    words.save(path)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    found = model_file.read_facts(path)
    assert found["estimator"] == "VCRF"
    assert found["parameters"]["base_strength"] == 0.005
    assert found["facts"]["objective"] == words.objective_
    assert found["facts"]["status"] == words.status_.name
    assert found["facts"]["n_candidates"] == words.n_candidates_
    assert found["facts"]["n_sentences"] == 3
    assert found["facts"]["n_tokens"] == 10
    assert set(found["facts"]["versions"]) == {"vcrf", "numpy", "numba"}
    assert found["families"][0]["name"] == words.families_[0].name
    with pytest.raises(InputError, match="checksum"):
        vcrf.load(path)


def test_the_checksum_of_the_data_tells_data_apart():
    """It depends on sentences and labels, not on the estimator; empty sentences are not trained on."""

    def checksum(data, labels, **options):
        options = {"max_passes": 1, "families": [Family("bias", (BIAS,))], **options}
        return trained(VCRF(**options), data, labels).model_.facts.data_checksum

    base = checksum(X, Y)
    assert checksum([*X, []], [*Y, []], recipe="paper", base_strength=0.3) == base
    others = [
        checksum(X[:2], Y[:2]),
        checksum(X[::-1], Y[::-1]),
        checksum([[*X[0], *X[1]], X[2]], [[*Y[0], *Y[1]], Y[2]]),
        checksum([["the", "cat", "sleep"], *X[1:]], Y),
        checksum(X, [["DET", "VERB", "VERB"], *Y[1:]]),
        checksum(X, [["DET", "NOUN", "VERB"], *Y[1:2], ["NOUN", "VERB2"]]),
        checksum(DICTS, Y, families="default"),
        checksum([[{**token, "n": 2.0} for token in sentence] for sentence in DICTS], Y, families="default"),
    ]
    assert len({base, *others}) == len(others) + 1


def test_the_history_and_the_status_are_objects_again(words, tmp_path):
    """Not JSON."""
    words.save(tmp_path / "m.vcrf")
    loaded = vcrf.load(tmp_path / "m.vcrf")
    assert loaded.status_ is Status.CONVERGED
    assert len(loaded.history_) > 0
    assert loaded.result_.relative_gap == words.result_.relative_gap


def test_names_are_decoded_when_asked_for(words, tmp_path):
    """They are views on the file, and look like a list."""
    words.save(tmp_path / "m.vcrf")
    names = vcrf.load(tmp_path / "m.vcrf").model_.names
    assert isinstance(names, StringList)
    assert names == words.model_.names
    assert names[-1] == words.model_.names[-1]
    assert names[1:3] == words.model_.names[1:3]
    assert names != words.model_.names[:-1]
    for index in (len(names), -len(names) - 1):
        with pytest.raises(IndexError):
            names[index]


def test_arrays_are_views_on_the_file_and_changes_stay_private(words, tmp_path):
    """Kernels see ordinary arrays that can be written."""
    path = tmp_path / "m.vcrf"
    words.save(path)
    before = path.read_bytes()
    weights = vcrf.load(path).model_.weights
    assert not weights.flags.owndata
    weights[:] = 0.0
    assert path.read_bytes() == before


def test_a_model_loads_without_scikit_learn(words, tmp_path):
    """And neither it nor the facts need numba, scipy or the safetensors library."""
    words.save(tmp_path / "m.vcrf")
    code = (
        "import sys; from vcrf.model.file import load_model, read_facts; "
        "read_facts(sys.argv[1]); print(load_model(sys.argv[1]).labels); "
        "print([m for m in ('sklearn', 'numba', 'scipy', 'safetensors') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "m.vcrf"], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    assert done.stdout.splitlines() == ["['DET', 'NOUN', 'VERB']", "[]"]


# The tests may run from a source tree that is not installed.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(vcrf.__file__).parents[1])}


# ------------------------------------------------------------------------------------ copies


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))], ids=["deepcopy", "pickle"])
def test_copies_of_a_loaded_estimator(words, dicts, tmp_path, copier):
    """They do not need the file any more."""
    for fitted, data in ((words, X), (dicts, DICTS)):
        path = tmp_path / "m.vcrf"
        fitted.save(path)
        twin = copier(vcrf.load(path))
        path.unlink()
        assert_same(twin, fitted, data)
        assert_same(copier(fitted), fitted, data)
        assert copier(clone(fitted)).get_params() == fitted.get_params()


def test_clones_of_a_loaded_estimator_train_the_same(words, tmp_path):
    """The parameters are all there."""
    words.save(tmp_path / "m.vcrf")
    loaded = vcrf.load(tmp_path / "m.vcrf")
    again = trained(clone(loaded), X)
    assert again.objective_ == words.objective_
    assert again.predict(X) == words.predict(X)
    assert trained(loaded, X[:1], Y[:1]).n_active_ == len(loaded.result_.features)  # a loaded one can be refitted


# ------------------------------------------------------------------------------------ what cannot be saved


def test_an_estimator_that_is_not_fitted_is_not_saved(tmp_path):
    """The file is not touched."""
    for fresh in (VCRF(), CRF()):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            fresh.save(tmp_path / "m.vcrf")
    assert list(tmp_path.iterdir()) == []


def test_classes_of_others_are_not_saved(tmp_path):
    """Loading would give another class."""

    class Mine(VCRF):
        pass

    mine = trained(Mine(max_passes=1), X)
    with pytest.raises(InputError, match=r"A Mine of .* cannot be saved"):
        mine.save(tmp_path / "m.vcrf")

    class Odd(Template):
        pass

    odd = trained(VCRF(families=[Family("odd", (Odd(((0, "word"),)),))], max_passes=1), X)
    with pytest.raises(InputError, match="reads attributes with a Odd cannot be saved"):
        odd.save(tmp_path / "m.vcrf")
    assert list(tmp_path.iterdir()) == []


def test_what_would_not_load_is_not_saved(tmp_path):
    """The check of reading is also one of writing."""
    fitted = trained(VCRF(recipe="paper", norm="l2"), X)
    fitted.model_.weights[0] = np.nan
    with pytest.raises(InputError, match="This VCRF cannot be saved, it would not load: a weight is not finite"):
        fitted.save(tmp_path / "m.vcrf")
    assert list(tmp_path.iterdir()) == []


def test_a_header_beyond_the_limit_is_not_written(words, tmp_path, monkeypatch):
    """The library would write it, and nobody could read it."""
    monkeypatch.setattr(container, "_MAX_HEADER", 1000)
    with pytest.raises(InputError, match=r"cannot be saved: .* a header of more than 1,000 bytes"):
        words.save(tmp_path / "m.vcrf")


# ------------------------------------------------------------------------------------ writing


def test_paths_that_cannot_be_files(words, tmp_path):
    """A directory, and one that does not exist."""
    with pytest.raises(InputError, match="not a regular file"):
        words.save(tmp_path)
    with pytest.raises(InputError, match="there is no directory"):
        words.save(tmp_path / "no" / "m.vcrf")


def test_links_and_permissions_stay(words, tmp_path):
    """A link leads to the new file; the file keeps its mode; a long name is no trouble."""
    real, link = tmp_path / ("é" * 120), tmp_path / "link.vcrf"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    words.save(link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert vcrf.load(real).predict(X) == words.predict(X)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failed_write_leaves_the_old_file_and_no_other(words, tmp_path, monkeypatch, function, error):
    """Whatever goes wrong before the move."""
    path = tmp_path / "m.vcrf"
    words.save(path)
    before = path.read_bytes()

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(error)):
        trained(VCRF(max_passes=1), X).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_and_no_other(words, tmp_path):
    """A real failure in the middle of writing: the system's limit on the size of a file."""
    resource = pytest.importorskip("resource")
    path = tmp_path / "m.vcrf"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            words.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_writer_leaves_a_file_that_loads(words, dicts, tmp_path, seed):
    """Two models are saved in turn until the process is killed: one of them is there, whole."""
    path, one, two = tmp_path / "m.vcrf", tmp_path / "one.vcrf", tmp_path / "two.vcrf"
    words.save(one)
    dicts.save(two)
    code = (
        "import sys, vcrf; path, *models = sys.argv[1:]; loaded = [vcrf.load(model) for model in models]\n"
        "while True:\n"
        "    for model in loaded: model.save(path)\n"
    )
    rng = np.random.default_rng(seed)
    allowed = {one.read_bytes(), two.read_bytes()}
    for _ in range(3):
        path.unlink(missing_ok=True)
        writer = subprocess.Popen([sys.executable, "-c", code, path, one, two], env=ENVIRONMENT)
        while not path.exists():
            assert writer.poll() is None
            time.sleep(0.01)
        time.sleep(rng.random() * 0.05)
        writer.kill()
        writer.wait()
        assert path.read_bytes() in allowed
        vcrf.load(path)


# ------------------------------------------------------------------------------------ files that are refused


def test_files_of_others_are_refused(tmp_path):
    """Nothing is unpickled, and the message names the file."""
    from safetensors.numpy import save

    path = tmp_path / "other.bin"
    strangers = [
        b"", b"1234", b"# text = a CoNLL-U file\n1\ta\n" * 9, b"lCRF" + bytes(100), b"PK\x03\x04" + bytes(100),
        pickle.dumps(X), bytes(1000), b"\xff" * 1000, (1 << 60).to_bytes(8, "little") + b"{" * 99,
        save({"weights": np.zeros(3)}),
        save({"weights": np.zeros(3)}, {"vcrf": '{"format": "other", "version": 1}'}), save({}, {"vcrf": "{}"}),
        save({}, {"format": "pt"}), frame(b'{"__metadata__":{"vcrf":3}}', b""), frame(b'{"__metadata__":[]}', b""),
    ]  # fmt: skip
    for stranger in strangers:
        path.write_bytes(stranger)
        for reader in (vcrf.load, model_file.load_model, model_file.read_facts):
            with pytest.raises(InputError, match=r"other.bin: not a vcrf model file. Pass a file"):
                reader(path)


def test_paths_that_cannot_be_read_are_refused(tmp_path):
    """As InputError, with the system's reason."""
    with pytest.raises(InputError, match=r"none.vcrf: cannot be read: No such file"):
        vcrf.load(tmp_path / "none.vcrf")
    with pytest.raises(InputError, match="cannot be read"):
        vcrf.load(str(tmp_path))


def test_a_newer_version_is_refused(content):
    """With the advice to upgrade."""
    parts = Parts(content)
    parts.document["version"] = container.VERSION + 1
    with pytest.raises(InputError, match=r"m: the model file has format version 6, this vcrf reads up to 5. Upgrade"):
        estimator_file.from_buffer(parts.assemble(), "m")


def tensors(name, index, value):
    """Set one element of a tensor."""

    def edit(parts):
        parts.tensors[name].flat[index] = value

    return edit


def replaced(name, change):
    """Put another tensor in place of one."""

    def edit(parts):
        parts.tensors[name] = np.array(change(parts.tensors[name]))

    return edit


def document(*path, to):
    """Set something in the document."""

    def edit(parts):
        value = parts.document
        for key in path[:-1]:
            value = value[key]
        value[path[-1]] = to

    return edit


def header(name, **about):
    """Set something in safetensors' header."""

    def edit(parts):
        parts.header = lambda head: head[name].update(about)

    return edit


def text(change):
    """Change the document's JSON text."""

    def edit(parts):
        parts.text = change

    return edit


def listed(name, value):
    """Put something else for a tensor in the document's list."""

    def change(old):
        found = json.loads(old)
        found["tensors"][name] = value
        return json.dumps(found)

    return text(change)


def strings(name, *encoded):
    """Put other strings, given as bytes."""

    def edit(parts):
        parts.tensors[f"{name}.bytes"] = np.frombuffer(b"".join(encoded), np.uint8)
        parts.tensors[f"{name}.offsets"] = np.cumsum([0, *map(len, encoded)], dtype=np.int64)

    return edit


def absurd_order(parts):
    """A table of tag patterns that no memory holds."""
    table = parts.tensors["family_of"]
    parts.tensors["family_of"] = np.concatenate([table, np.full((len(table), 30), -1)], axis=1)


def no_tags(parts):
    """A family of empty tag patterns."""
    parts.document["families"].append(parts.document["families"][0] | {"tags": 0})
    parts.tensors["family_of"][0, 0] = len(parts.document["families"]) - 1


def repeated_key(parts):
    """Two attributes of the first source that has two get one key."""
    first = parts.tensors["source_ptr"][np.flatnonzero(np.diff(parts.tensors["source_ptr"]) > 1)[0]]
    parts.tensors["keys"][first + 1] = parts.tensors["keys"][first]


def surrogate_name(parts):
    """The first name becomes what Python makes of a byte that is not UTF-8."""
    offsets = parts.tensors["names.offsets"]
    rest = parts.tensors["names.bytes"][offsets[1] :]
    parts.tensors["names.bytes"] = np.concatenate([np.frombuffer(b"\xed\xb2\x80", np.uint8), rest])
    offsets[1:] += 3 - offsets[1]


def rename(name, to):
    """Give a tensor another name."""

    def edit(parts):
        parts.tensors[to] = parts.tensors.pop(name)

    return edit


def other_scheme(parts):
    """A scheme that does not have one of the labels, which is longer than any message."""
    strings("labels", b"O", b"B-A", b"x" * 10**5)(parts)
    parts.document["parameters"]["constraints"] = "BIO"


def mixed_sources(parts):
    """No sentence has words and given features."""
    parts.document["sources"][0] = {"feature": "w"}
    parts.document["sources"][1] = {"parts": [[0, "word"]], "pad": False}


def file_columns(parts):
    """The label lies behind the last column."""
    parts.document["facts"] |= {"file_format": "columns", "form_column": 0, "tag_column": 2, "n_file_columns": 2}


WRONG = {
    "no labels": (strings("labels"), "there are no labels"),
    "a label twice": (strings("labels", b"a", b"b", b"a"), "a label occurs twice"),
    "a label no int": (document("int_labels", to=[0]), "'DET' is no int"),
    "int_labels out of range": (document("int_labels", to=[3]), "int_labels must hold numbers of the 3 labels"),
    "int_labels no numbers": (document("int_labels", to=[True]), "int_labels must hold"),
    "int_labels missing": (document("int_labels", to=None), "'int_labels' is missing or no list"),
    "labels invalid": (strings("labels", b"a", b"\xff", b"b"), "invalid UTF-8 at byte 1 of labels"),
    "labels overlong": (strings("labels", b"a", b"\xc0\xaf", b"b"), "invalid UTF-8 at byte 1 of labels"),
    "a label no text": (strings("labels", b"a", b"\xed\xb2\x80", b"b"), "a lone surrogate, .* at byte 1 of labels"),
    "a label half a pair": (strings("labels", b"a", b"\xed\xa0\xbd", b"b"), "a lone surrogate, .* at byte 1 of labels"),
    "a name no text": (surrogate_name, "a lone surrogate, which is no character, at byte 0 of names"),
    "a parameter no text": (document("parameters", "norm", to="a\udc80"), "its header holds a lone surrogate"),
    "a key no text": (document("parameters", "\ud800", to=1), "its header holds a lone surrogate"),
    "text not UTF-8": (text(lambda old: old.replace("norm", "\udc80")), "its header holds a lone surrogate"),
    "a tensor's name no text": (rename("weights", "\udc80"), "its header holds a lone surrogate"),
    "labels cut in a character": (strings("labels", b"\xc3", b"\xa9", b"b"), "inside a character"),
    "labels' offsets": (tensors("labels.offsets", 1, 99), "offsets of labels must rise from 0"),
    "labels' first offset": (tensors("labels.offsets", 0, 1), "offsets of labels must rise from 0"),
    "names' last offset": (tensors("names.offsets", -1, 1), "offsets of names must rise from 0"),
    "names' bytes left over": (
        replaced("names.offsets", lambda old: np.minimum(old, old[-1] - 1)),
        "offsets of names must rise from 0",
    ),
    "too few names": (strings("names", b"one"), "names has 1 elements, expected"),
    "no offsets at all": (replaced("names.offsets", lambda old: old[:0]), "offsets of names"),
    "ptr falls": (tensors("ptr", 1, 10**6), "ptr must have .* elements that rise from 0"),
    "ptr ends early": (tensors("ptr", -1, 0), "ptr must have"),
    "ptr leaves a weight out": (replaced("ptr", lambda old: np.minimum(old, old[-1] - 1)), "ptr must have"),
    "ptr starts late": (tensors("ptr", 0, 1), "ptr must have"),
    "ptr negative": (tensors("ptr", 1, -1), "ptr must have"),
    "ptr short": (replaced("ptr", lambda old: np.append(old[:-2], old[-1])), "ptr must have"),
    "source_ptr falls": (tensors("source_ptr", 1, 10**6), "source_ptr must have"),
    "lengths short": (replaced("lengths", lambda old: old[:-1]), "lengths has .* elements, expected"),
    "codes short": (replaced("codes", lambda old: old[:-1]), "codes has .* elements, expected"),
    "family_of short": (replaced("family_of", lambda old: old[:-1]), "family_of has .* elements, expected"),
    "length 0": (tensors("lengths", 0, 0), "pattern lengths must be 1..3"),
    "length too long": (tensors("lengths", 0, 4), "pattern lengths must be 1..3"),
    "code too large": (tensors("codes", 0, 3), "a pattern code is too large for its length over 3 labels"),
    "code huge": (tensors("codes", 0, 2**32 - 1), "a pattern code is too large"),
    "weight nan": (tensors("weights", 0, np.nan), "a weight is not finite"),
    "weight too large": (tensors("weights", 0, -1.1e100), r"a weight is beyond 1e\+100, so that scores could overflow"),
    "weight huge": (tensors("weights", 0, 1e308), "a weight is beyond"),
    "weight inf": (tensors("weights", 0, -np.inf), "a weight is not finite"),
    "weight of no family": (tensors("family_of", 1, -1), "a weight belongs to no family"),
    "family_of too large": (tensors("family_of", 1, 99), "family_of must hold numbers of the"),
    "family_of negative": (tensors("family_of", 1, -2), "family_of must hold numbers of the"),
    "family_of of another length": (tensors("family_of", 2, 0), "under another pattern length than its own"),
    "family_of of length 0": (tensors("family_of", 0, 0), "under another pattern length than its own"),
    "family of huge tags": (document("families", 0, "tags", to=10**30), "under another pattern length than its own"),
    "family of no tags": (no_tags, "under another pattern length than its own"),
    "no orders": (replaced("family_of", lambda old: old[:, :0]), "tag patterns of length -1"),
    "absurd order": (absurd_order, "tag patterns of length 33 over 3 labels are beyond the budget"),
    "key 0": (tensors("keys", 0, 0), "an attribute has key 0"),
    "key twice": (repeated_key, "two attributes of one source have the same key"),
    "weights of float32": (
        replaced("weights", lambda old: old.astype("<f4")),
        "'weights' has 1 dimensions of float32, expected 1 of float64",
    ),
    "weights of float16": (replaced("weights", lambda old: old.astype("<f2")), "dtype 'F16': expected one of"),
    "weights of int": (replaced("weights", lambda old: old.astype("<i8")), "'weights' has 1 dimensions of int64"),
    "weights in 2 dimensions": (replaced("weights", lambda old: old.reshape(1, -1)), "has 2 dimensions of float64"),
    "weights missing": (lambda parts: parts.tensors.pop("weights"), "'weights' is missing"),
    "names missing": (lambda parts: parts.tensors.pop("names.bytes"), "'names.bytes' is missing"),
    "3 dimensions": (replaced("weights", lambda old: old.reshape(1, 1, -1)), "no valid shape and place"),
    "estimator": (document("estimator", to="Popen"), "unknown estimator 'Popen': expected one of VCRF, CRF"),
    "estimator no text": (document("estimator", to=["VCRF"]), "'estimator' is missing or no str"),
    "estimator missing": (lambda parts: parts.document.pop("estimator"), "'estimator' is missing"),
    "parameters missing": (lambda parts: parts.document.pop("parameters"), "'parameters' is missing"),
    "seed no number": (document("parameters", "random_state", to="one"), "`random_state` must be None, an integer of"),
    "seed no integer": (document("parameters", "random_state", to=0.5), "`random_state` must be None, an integer of"),
    "seed negative": (document("parameters", "random_state", to=-1), "`random_state` must be None, an integer of"),
    "no threads": (document("parameters", "n_jobs", to=0), "`n_jobs` must be positive, or None or -1"),
    "threads no number": (document("parameters", "n_jobs", to="[bold]"), "`n_jobs` must be positive, or None or -1"),
    "constraints a number": (
        document("parameters", "constraints", to=7),
        "constraints is nothing that a file can hold",
    ),
    "constraints unknown": (document("parameters", "constraints", to="IOB9"), "A scheme is one of IOB1, BIO"),
    "constraints of other labels": (document("parameters", "constraints", to="BIO"), "Labels of spans are"),
    "constraints of a long label": (other_scheme, r"Labels of spans are .*xxx\. Train the model again"),
    "loss a number": (document("parameters", "loss", to=0.5), "loss is nothing that a file can hold"),
    "loss for another parameter": (
        document("parameters", "tol", to={"loss": {"class": "ZeroOneLoss"}}),
        "tol is neither a number nor text",
    ),
    "callback": (document("parameters", "callback", to="print"), "callback is nothing that a file can hold"),
    "parameters": (document("parameters", "__class__", to=1), "unknown parameters: .'__class__'"),
    "a parameter": (document("parameters", "tol", to={"a": 1}), "tol is neither a number nor text"),
    "a mapping": (document("parameters", "complexities", to={"mapping": {"a": []}}), "neither a number nor text"),
    "families no list": (document("parameters", "families", to={"families": {}}), "families is no list"),
    "a family": (document("parameters", "families", to={"families": [1]}), "a family is not name, tags and sources"),
    "half a family": (
        document("parameters", "families", to={"families": [{"name": "a", "tags": 1}]}),
        "a family is not name, tags and sources",
    ),
    "a family's name no text": (
        document("parameters", "families", to={"families": [{"name": 1, "tags": 1, "sources": []}]}),
        "no valid name and tags",
    ),
    "a family's tags": (
        document("parameters", "families", to={"families": [{"name": "a", "tags": "1", "sources": []}]}),
        "no valid name and tags",
    ),
    "fitted": (document("fitted", "predict", to=1), "'predict' is no fitted attribute"),
    "fitted model": (document("fitted", "model_", to=1), "'model_' is no fitted attribute"),
    "fitted value": (document("fitted", "n_columns_", to=[]), "n_columns_ is neither a number nor text"),
    "fitted count no number": (document("fitted", "n_columns_", to="3"), "n_columns_ is missing or no count"),
    "fitted count too large": (document("fitted", "n_columns_", to=10**400), "n_columns_ is missing or no count"),
    "fitted count missing": (lambda parts: parts.document["fitted"].pop("n_columns_"), "n_columns_ is missing"),
    "sources no list": (document("sources", to={}), "sources is no list"),
    "source unknown": (document("sources", 0, to={"import": "os"}), "neither a template nor a named feature"),
    "source a number": (document("sources", 0, to=3), "neither a template nor a named feature"),
    "source's name": (document("sources", 0, to={"feature": 1}), "neither a template nor a named feature"),
    "sources of words and of features": (mixed_sources, "some sources read words and others given features"),
    "source's pad": (document("sources", 0, to={"parts": [], "pad": 1}), "neither a template nor a named feature"),
    "a part": (document("sources", 0, "parts", to=[[0]]), r"not \[offset, reading\]"),
    "a part a number": (document("sources", 0, "parts", to=[0]), r"not \[offset, reading\]"),
    "far offset": (document("sources", 0, "parts", to=[[2**31, "word"]]), r"not \[offset, reading\]"),
    "reading": (document("sources", 0, "parts", to=[[0, "eval"]]), "Unknown reading 'eval'"),
    "long reading": (document("sources", 0, "parts", to=[[0, "x" * 10**4]]), "Unknown reading 'x{40}': expected"),
    "affix": (document("sources", 0, "parts", to=[[0, "suffix:" + "9" * 99]]), "Unknown reading"),
    "families' facts": (document("families", to=None), "families is no list"),
    "a family's facts": (document("families", 0, to=[]), "expected an object with the fields of FamilyFacts"),
    "a family's count": (document("families", 0, "n_active", to=-1), "n_active is no int: -1"),
    "a family's strength": (document("families", 0, "l1", to="much"), "l1 is no number: 'much'"),
    "a family's name": (document("families", 0, "name", to=3), "name is no str: 3"),
    "a family's other field": (document("families", 0, "color", to=3), "unknown fields: .'color'"),
    "a family's missing field": (lambda parts: parts.document["families"][0].pop("l2"), "FamilyFacts has no l2"),
    "facts": (document("facts", to=1), "facts is no object"),
    "status": (document("facts", "status", to="FINE"), "unknown status 'FINE'"),
    "objective": (document("facts", "objective", to=10**400), "objective is no number"),
    "file format": (document("facts", "file_format", to="pickle"), "unknown file_format 'pickle'"),
    "file columns": (file_columns, "the training file has 2 columns, fewer than"),
    "versions": (document("facts", "versions", to={"vcrf": 1}), "versions are not text"),
    "versions no object": (document("facts", "versions", to=[]), "versions are not text"),
    "history": (document("facts", "history", to={}), "history is no list"),
    "a record": (document("facts", "history", 0, "phase", to=1), "phase is no str: 1"),
    "shape too large": (header("weights", shape=[2**39]), "which is not its shape"),
    "shape beyond 40 bits": (header("weights", shape=[2**60]), "no valid shape and place"),
    "shape negative": (header("weights", shape=[-1]), "no valid shape and place"),
    "place beyond the file": (header("weights", data_offsets=[2**39, 2**39]), "which is not its shape"),
    "place negative": (header("weights", data_offsets=[-8, 0]), "no valid shape and place"),
    "place of no numbers": (header("weights", data_offsets=["0", 8]), "no valid shape and place"),
    "place of one number": (header("weights", data_offsets=[0]), "no valid shape and place"),
    "listed badly": (listed("weights", []), "another shape than listed"),
    "listed with another shape": (listed("weights", {"shape": [1]}), "another shape than listed"),
    "listed without a checksum": (listed("keys", None), "another shape than listed"),
    "overlap": (header("document_sha256", data_offsets=[0, 32]), "not where the one before ends"),
    "reversed place": (header("weights", data_offsets=[80, 0]), "has -80 bytes"),
    "unknown dtype": (header("weights", dtype="C64"), "dtype 'C64': expected one of"),
    "other field": (header("weights", more=1), "not described by dtype, shape and data_offsets"),
    "tensor not listed": (header("__metadata__", more={}), None),
    "text cut": (text(lambda old: old[:-1]), "its header is not valid JSON"),
    "text nan": (text(lambda old: old.replace('"seconds": ', '"seconds": NaN, "s": ')), "not valid JSON"),
    "text nested": (text(lambda old: old[:-1] + ', "a": ' + "[" * 10**5 + "]" * 10**5 + "}"), "not valid JSON"),
    "text number": (text(lambda old: old[:-1] + ', "a": ' + "9" * 10**5 + "}"), "not valid JSON"),
    "text key twice": (text(lambda old: old[:-1] + ', "facts": 1}'), "not valid JSON"),
    "text a list": (text(lambda old: f"[{old}]"), "its header is not a JSON object"),
    "text empty list of tensors": (document("tensors", to={}), "its list of tensors does not match the tensors"),
    "text no list of tensors": (document("tensors", to=[]), "its list of tensors does not match the tensors"),
    "text a number of tensors": (document("tensors", to=3), "its list of tensors does not match the tensors"),
    "text without tensors": (text(lambda old: old.replace('"tensors"', '"others"')), "does not list its tensors"),
    "text other shapes": (document("tensors", to={"weights": {"shape": [0]}}), "does not match the tensors"),
    "version text": (document("version", to="1"), "not a vcrf model file"),
    "version 0": (document("version", to=0), "not a vcrf model file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case, content):
    """With right checksums, so that only the check in question stands in the way."""
    edit, message = WRONG[case]
    parts = Parts(content)
    edit(parts)
    forged_content = parts.assemble()
    if message is None:  # what the format allows
        estimator_file.from_buffer(forged_content, "file.vcrf")
        return
    with pytest.raises(InputError, match=message) as caught:
        estimator_file.from_buffer(forged_content, "file.vcrf")
    assert str(caught.value).startswith("file.vcrf: ")
    assert str(caught.value).endswith(("again.", "with `save`.", "`save` wrote.", "new.vcrf`."))


def test_all_readers_refuse_the_same(content, tmp_path):
    """What tags and what is shown is checked as what `load` gives."""
    path = tmp_path / "m.vcrf"
    for edit, message in (
        (document("estimator", to="Popen"), "unknown estimator"),
        (document("fitted", to=3), "'fitted' is missing or no dict"),
        (tensors("weights", 0, 1e308), "a weight is beyond"),
        (strings("labels", b"a", b"\xed\xb2\x80", b"b"), "a lone surrogate"),
    ):
        parts = Parts(content)
        edit(parts)
        path.write_bytes(parts.assemble())
        for reader in (vcrf.load, model_file.load_model, load_tagger):
            with pytest.raises(InputError, match=message):
                reader(path)
    # The header alone says which command a file is for: it is checked where only the header is read.
    for to in (["VCRF"], {}, None, 3, "Popen"):
        parts = Parts(content)
        parts.document["estimator"] = to
        path.write_bytes(parts.assemble())
        for reader in (model_file.read_facts, is_tree_model):
            with pytest.raises(InputError, match=r"m\.vcrf: .*estimator"):
                reader(path)
    parts = Parts(content)
    parts.document["parameters"]["constraints"] = "BIO"
    path.write_bytes(parts.assemble())
    with pytest.raises(InputError, match="Labels of spans are"):
        load_tagger(path)


@pytest.mark.parametrize("base", ["words", "dicts"])
def test_the_largest_weights_work(base, request, seed):
    """Scores of 1e100 and more neither overflow nor warn, and probabilities sum to one."""
    parts, rng = Parts(estimator_file.to_bytes(request.getfixturevalue(base))), np.random.default_rng(seed)
    weights = parts.tensors["weights"]
    weights[:] = rng.choice([-1e100, 1e100], len(weights))
    loaded = estimator_file.from_buffer(parts.assemble(), "m")
    data = X if base == "words" else [[{**token, "n": 1e50} for token in sentence] for sentence in DICTS]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        marginals = np.array([list(token.values()) for tokens in loaded.predict_marginals(data) for token in tokens])
        np.testing.assert_allclose(marginals.sum(axis=1), 1.0)
        assert [*map(len, loaded.predict_mbr(data, "edit", k=3))] == [*map(len, data)]
        assert all(0.0 <= p <= 1.0 for best in loaded.predict_kbest(data, 3) for _, p in best)
        assert all(np.isfinite(token.difference) for token in explain(loaded, data[0]))


def test_constraints_that_are_empty_come_back(tmp_path):
    """None at all, also as files once wrote it; labels of constraints may be bool."""
    y = [[word == "the" for word in sentence] for sentence in X]
    for pairs in ([], [(True, False)]):
        trained(VCRF(max_passes=2, constraints=pairs), X, y).save(tmp_path / "m.vcrf")
        loaded = vcrf.load(tmp_path / "m.vcrf")
        assert list(as_constraints(loaded.constraints).forbidden) == pairs
    parts = Parts((tmp_path / "m.vcrf").read_bytes())
    parts.document["parameters"]["constraints"] = {"families": []}
    assert estimator_file.from_buffer(parts.assemble(), "m").constraints == []


def test_named_features_share_one_table(dicts):
    """A key of one named feature must not occur in another."""
    parts = Parts(estimator_file.to_bytes(dicts))
    assert sum(isinstance(source, NamedFeature) for source in dicts.model_.sources) == 3
    first = parts.tensors["source_ptr"][:2]
    parts.tensors["keys"][first[1]] = parts.tensors["keys"][first[0]]
    with pytest.raises(InputError, match="two attributes of one source have the same key"):
        estimator_file.from_buffer(parts.assemble(), "m")


def test_trailing_and_missing_bytes_are_refused(content):
    """The tensors fill the file."""
    for wrong in (content + b"\0", content[:-1], content[:8], content[: len(content) // 2]):
        with pytest.raises(InputError, match=r"damaged: .* Copy the file again"):
            estimator_file.from_buffer(wrong, "m")


def test_tensors_that_are_not_aligned_are_refused(content):
    """One more blank in the header is valid JSON, and moves all tensors by a byte."""
    size = int.from_bytes(content[:8], "little")
    moved = (size + 1).to_bytes(8, "little") + content[8 : 8 + size] + b" " + content[8 + size :]
    with pytest.raises(InputError, match="is not aligned"):
        estimator_file.from_buffer(moved, "m")


def test_a_file_that_ends_in_its_header_is_told(content):
    """The commonest damage: a download that was cut off."""
    with pytest.raises(InputError, match="the file ends after 100 bytes, inside its header"):
        estimator_file.from_buffer(content[:100], "m")


def test_one_flipped_bit_is_seen_anywhere(content, seed):
    """Thousands of single bits, all of the first bytes among them."""
    rng = np.random.default_rng(seed)
    bits = np.concatenate([np.arange(256), rng.choice(8 * len(content), 3000, replace=False)])
    for bit in bits.tolist():
        raw = bytearray(content)
        raw[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InputError):
            estimator_file.from_buffer(bytes(raw), "m")


def test_accidents_are_seen(content, dicts, seed):
    """Thousands of cuts, repeats, zeroed pieces and pieces of another file."""
    rng = np.random.default_rng(seed)
    other = estimator_file.to_bytes(dicts)
    for _ in range(3000):
        raw = damaged(content, other, rng)
        if raw != content:
            with pytest.raises(InputError):
                estimator_file.from_buffer(raw, "m")


def test_forgeries_are_refused_or_harmless(words, dicts, seed):
    """Right checksums, wrong contents: InputError, or an estimator that works. No case is slow or large."""
    resource = pytest.importorskip("resource")
    rng = np.random.default_rng(seed)
    n_refused, slowest = 0, 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def spent():
        # Of this thread alone, whatever else the machine does, and without what is compiled for the first time.
        return time.thread_time() - compiling.seconds

    for fitted, data in ((words, X), (dicts, DICTS)):
        content = estimator_file.to_bytes(fitted)
        with watch_compiling(lambda: None) as compiling:
            for _ in range(1500):
                raw = forged(content, rng)
                began = spent()
                try:
                    with np.errstate(all="ignore"):
                        loaded = estimator_file.from_buffer(raw, "m")
                        loaded.predict(data)
                        loaded.predict_marginals(data)
                        list(loaded.model_.features())
                except InputError:
                    n_refused += 1
                slowest = max(slowest, spent() - began)
    assert 1500 < n_refused < 3000
    assert slowest < 5.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


# ------------------------------------------------------------------------------------ real data


def test_a_treebank_is_tagged_the_same(treebank, tmp_path):
    """Every sentence of the test split, by a tagger that was saved."""
    path = treebank("tamil")
    train, test = (read_corpus(path, tag="upos", split=split) for split in ("train", "test"))
    fitted = trained(VCRF(max_passes=15), train.tokens, train.labels)
    fitted.save(tmp_path / "tamil.vcrf")
    loaded = vcrf.load(tmp_path / "tamil.vcrf")
    assert loaded.predict(test.tokens) == fitted.predict(test.tokens)
    assert loaded.predict_marginals(test.tokens[:20]) == fitted.predict_marginals(test.tokens[:20])
    assert loaded.score(test.tokens, test.labels) > 0.7


@pytest.mark.parametrize(
    "constraints",
    [
        "BIO",
        [("B-X", "B-X"), ["O", "B-X"]],
        Constraints("BIO", [("B-X", "B-X")], ["O"], ["I-X"]),
    ],
)
def test_constraints_survive(tmp_path, constraints):
    """Schemes, forbidden pairs and whole objects: the loaded estimator labels under the same constraints."""
    X = [["a", "b", "c"], ["b", "b", "a"], ["c"]]
    tagger = VCRF(recipe="paper", constraints=constraints, base_strength=0.01).fit(
        X, [["B-X", "I-X", "O"], ["O", "B-X", "I-X"], ["O"]]
    )
    tagger.save(tmp_path / "c.vcrf")
    again = load(tmp_path / "c.vcrf")
    assert as_constraints(again.constraints).compile(again.classes_).pairs.tolist() == (
        as_constraints(constraints).compile(tagger.classes_).pairs.tolist()
    )
    assert again.predict(X) == tagger.predict(X)
    assert again.predict_marginals(X) == tagger.predict_marginals(X)


def test_development_errors_survive(tmp_path):
    """The history keeps the errors on the development set."""
    X, y = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]]
    tagger = VCRF(recipe="paper", base_strength=0.01).fit(X, y, X_dev=X, y_dev=y)
    tagger.save(tmp_path / "d.vcrf")
    again = load(tmp_path / "d.vcrf")
    assert [record.dev_error for record in again.history_] == [record.dev_error for record in tagger.history_]
    assert tagger.history_[-1].dev_error is not None
