"""Tables of word classes, templates that read them, and models that keep them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import vcrf
from vcrf import VCRF
from vcrf.classes import WordClasses
from vcrf.errors import InputError
from vcrf.estimators.file import from_buffer, to_bytes
from vcrf.families import Family, Template, class_families, default_families, intern_sentences
from vcrf.labelling.loading import load_tagger
from vcrf.model import container

TABLE = {"dog": "animal", "cat": "animal", "Rome": "city", "runs": "verb", "sleeps": "verb", "owl": "animal"}
X = [["a", "dog", "runs"], ["Rome", "sleeps"], ["a", "tall", "cat", "sleeps"], ["dogs", "run"]]
Y = [["D", "N", "V"], ["P", "V"], ["D", "A", "N", "V"], ["N", "V"]]
NEW = [["a", "owl", "sleeps"], ["OWL", "runs"], ["xx", "yy"]]


@pytest.fixture(scope="module")
def tagger() -> VCRF:
    """Trained with classes; "owl" is in the table and not in the training text."""
    return VCRF(word_classes=TABLE, affix=2).fit(X, Y)


def test_words_have_classes_or_none() -> None:
    """As written, else in lower case; a word that is in lower case does not find one with capitals."""
    table = WordClasses.of(TABLE)
    assert [table.class_of(word) for word in ("dog", "DOG", "Rome", "rome", "x", "")] == [
        "animal", "animal", "city", None, None, None,
    ]  # fmt: skip
    assert (len(table), len(table.names), repr(table)) == (6, 3, "<WordClasses: 6 words in 3 classes>")


def test_tables_are_equal_by_content() -> None:
    """Whatever the order of the words; copies and pickles too."""
    table = WordClasses.of(TABLE)
    again = [pickle.loads(pickle.dumps(table)), copy.deepcopy(table), WordClasses.of(dict(TABLE))]
    assert all(other == table and hash(other) == hash(table) for other in again)
    assert table != WordClasses.of({**TABLE, "dog": "city"})
    assert table != WordClasses.of({word: name.upper() for word, name in TABLE.items()})


@pytest.mark.parametrize(
    ("names", "is_tree"),
    [(["00", "01", "1"], True), (["0", "01"], False), (["a", "0"], False), (["animal", "city"], False)],
)
def test_trees_are_told_from_other_names(names: list[str], is_tree: bool) -> None:
    """Bits of which none is the beginning of another; only trees have families of wider classes."""
    table = WordClasses.of({f"w{i}": name for i, name in enumerate(names)})
    assert table.is_tree is is_tree
    assert ("class:4[-1]" in [family.name for family in class_families(table)]) is is_tree


def test_wrong_tables_are_refused() -> None:
    """Nothing at all, no text, and arrays that do not fit."""
    with pytest.raises(InputError, match="at least one word"):
        WordClasses.of({})
    for bad in ({"a": 1}, {1: "a"}, {"": "a"}, {"a": ""}):
        with pytest.raises(InputError, match="both text and not empty"):
            WordClasses.of(bad)  # type: ignore[arg-type]
    keys, numbers = np.array([1, 2], np.uint64), np.array([0, 1], np.uint32)
    for wrong in ((keys[::-1], numbers, ("a", "b")), (keys, numbers[:1], ("a", "b")), (keys[:0], numbers[:0], ("a",))):
        with pytest.raises(InputError, match="every word once"):
            WordClasses(*wrong)
    for names in (("a",), ("a", "a")):
        with pytest.raises(InputError, match="different names"):
            WordClasses(keys, numbers, names)


def test_templates_read_classes_by_content() -> None:
    """Equal keys for equal classes, in any text; no attribute where a word has none; the boundary as for others."""
    table = WordClasses.of({**TABLE, "dog": "0011", "cat": "0010", "owl": "0111"})
    one, other = intern_sentences([["dog", "cat", "x"]]), intern_sentences([["owl", "DOG"], ["cat"]])
    own = Template(((0, "class"),), classes=table)
    assert own.keys(one).tolist()[:2] == [own.keys(other)[1], own.keys(other)[2]]
    assert len({*own.keys(one).tolist()}) == 3
    assert own.keys(one)[2] == 0
    wide = Template(((0, "class:2"),), classes=table).keys(one)
    assert wide[0] == wide[1] != 0
    assert Template(((0, "class:2"),), classes=table).keys(other)[0] != wide[0]
    before = Template(((-1, "class"), (0, "word")), pad=True, classes=table)
    assert [key != 0 for key in before.keys(one)] == [True, True, True]
    assert [key != 0 for key in Template(((-1, "class"),), classes=table).keys(one)] == [False, True, True]
    assert before.describe(one, 1) == "class[-1]=0011 word=cat"
    assert Template(((0, "class:2"),), classes=table).describe(one, 0) == "class:2=00"
    assert own.log_cardinality(one) == pytest.approx(np.log(2))
    with pytest.raises(InputError, match="needs a table of word classes"):
        Template(((0, "class"),)).keys(one)
    for reading in ("class:0", "class:", "class:x", "classes"):
        with pytest.raises(InputError, match=r"Unknown reading .* class, class:N"):
            Template(((0, reading),), classes=table).keys(one)


def test_classes_tell_of_words_that_training_has_not_seen(tagger: VCRF) -> None:
    """A word of the raw text has the weights of its class; without the table it has none."""
    by_class = [f for f in tagger.model_.features() if f.family == "class" and f.attribute == "class=animal"]
    assert any(f.labels == ("N",) and f.weight > 0 for f in by_class)
    without = VCRF(affix=2).fit(X, Y)
    probability = [model.predict_marginals([["a", "owl", "sleeps"]])[0][1]["N"] for model in (tagger, without)]
    assert probability[0] > probability[1]


def test_scores_by_word_types_are_those_of_single_attributes(tagger: VCRF) -> None:
    """The fast way to score knows the table too."""
    model, text = tagger.model_, intern_sentences(NEW + X)
    assert model.words is not None
    np.testing.assert_allclose(model.potentials(text).node, model._fired_potentials(text).node, rtol=1e-12, atol=1e-12)


def test_the_model_file_has_the_table(tagger: VCRF, tmp_path) -> None:
    """Labels, parameters and training again are the same without the file of classes; so is tagging alone."""
    tagger.save(tmp_path / "m.vcrf")
    again = vcrf.load(tmp_path / "m.vcrf")
    assert again.word_classes == WordClasses.of(TABLE)
    assert again.predict_marginals(NEW) == tagger.predict_marginals(NEW)
    assert load_tagger(tmp_path / "m.vcrf").predict(NEW) == tagger.predict(NEW)
    assert to_bytes(again) == to_bytes(tagger)
    assert again.fit(X, Y).predict_marginals(NEW) == tagger.predict_marginals(NEW)


def test_a_list_of_families_may_read_classes(tagger: VCRF, tmp_path) -> None:
    """The same families by hand give the same model, and come back from a file with the table."""
    families = [*default_families(affix=2), *class_families(WordClasses.of(TABLE))]
    by_hand = VCRF(families=families).fit(X, Y)
    assert by_hand.predict_marginals(NEW) == tagger.predict_marginals(NEW)
    by_hand.save(tmp_path / "m.vcrf")
    again = vcrf.load(tmp_path / "m.vcrf")
    assert again.families == families
    assert again.predict_marginals(NEW) == tagger.predict_marginals(NEW)


def test_files_that_do_not_fit_are_refused(tagger: VCRF) -> None:
    """No table, half a table, a wrong one; and two tables cannot be saved."""
    contents = container.decode(to_bytes(tagger), "m")

    def changed(**tensors: object) -> bytes:
        kept = {name: value for name, value in {**contents.tensors, **tensors}.items() if value is not None}
        return container.encode(dict(contents.document), kept)

    parts = ("classes.keys", "classes.numbers", "classes.names.bytes", "classes.names.offsets")
    assert from_buffer(changed(), "m").predict(NEW) == tagger.predict(NEW)
    for tensors, message in (
        (dict.fromkeys(parts), "reads word classes, and there are none"),
        ({"classes.numbers": None}, "'classes.numbers' is missing"),
        ({"classes.numbers": contents.tensors["classes.numbers"] + np.uint32(9)}, "different names"),
        ({"classes.keys": contents.tensors["classes.keys"][::-1].copy()}, "every word once"),
    ):
        with pytest.raises(InputError, match=message):
            from_buffer(changed(**tensors), "m")
    two = [Family(f"class {i}", (Template(((0, "class"),), classes=WordClasses.of({"a": str(i)})),)) for i in range(2)]
    with pytest.raises(InputError, match="one table of word classes, this model has 2"):
        to_bytes(VCRF(families=two).fit(X, Y))


def test_wrong_parameters_are_named(tmp_path) -> None:
    """A number is no table; given attributes have no words."""
    with pytest.raises(InputError, match="`word_classes` must be the path of a file"):
        VCRF(word_classes=3).fit(X, Y)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected a readable file"):
        VCRF(word_classes=tmp_path / "no").fit(X, Y)
    with pytest.raises(InputError, match="read off tokens"):
        VCRF(word_classes=TABLE).fit([[{"w": "a"}]], [["A"]])
