"""Labels that are several columns of CoNLL-U at once."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcrf.data import open_bundles
from vcrf.data.bundles import components_of, is_bundle, join_columns, split_columns
from vcrf.data.layout import conllu_layout
from vcrf.data.raw import raw_content
from vcrf.data.readers import read_corpus, read_with_layout
from vcrf.errors import InputError
from vcrf.metrics import morphology

TEXT = (
    "1\tnuri\tnur\tNOUN\tNN\tCase=Nom|Number=Sing\t_\t_\t_\t_\n"
    "2-3\tdana\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tda\tda\tADP\tIN\t_\t_\t_\t_\t_\n"
    "3\tna\tna\tVERB\tVB\tMood=Ind\t_\t_\t_\t_\n\n"
)
BOTH = ["UPOS=NOUN|Case=Nom|Number=Sing", "UPOS=ADP", "UPOS=VERB|Mood=Ind"]

values = st.text("abC,1[]=", min_size=1, max_size=3)
features = st.dictionaries(st.text("abC[]", min_size=1, max_size=3), values, max_size=4).map(
    lambda found: "|".join(f"{name}={value}" for name, value in found.items()) or "_"
)


def read(tag):
    """Corpus and layout of the text."""
    return read_with_layout(io.StringIO(TEXT), tag, format="conllu")


def test_a_bundle_is_read_from_its_columns() -> None:
    """Protects what a label of several columns looks like."""
    corpus, layout = read("upos+feats")
    assert list(corpus.labels[0]) == BOTH
    assert (layout.tag, layout.tags, layout.bundle) == (3, (3, 5), "UPOS+FEATS")
    assert list(read("feats")[0].labels[0]) == ["Case=Nom|Number=Sing", "_", "Mood=Ind"]
    assert list(read("xpos+3")[0].labels[0]) == ["XPOS=NN|UPOS=NOUN", "XPOS=IN|UPOS=ADP", "XPOS=VB|UPOS=VERB"]
    assert list(read("upos")[0].labels[0]) == ["NOUN", "ADP", "VERB"]


def test_a_model_reads_the_columns_that_it_was_trained_on() -> None:
    """Protects data that are read as in training when no column is asked for."""
    corpus, layout = read_with_layout(io.StringIO(TEXT), format="conllu", trained=conllu_layout("upos+feats"))
    assert list(corpus.labels[0]) == BOTH
    assert layout.tags == (3, 5)


@given(st.sampled_from(["NOUN", "X=1", "-"]), features)
def test_columns_come_back(upos: str, feats: str) -> None:
    """Protects that a bundle says all that its columns said."""
    label = join_columns(["UPOS", "FEATS"], [upos, feats])
    assert split_columns(label, ["UPOS", "FEATS"]) == [upos, feats]
    assert components_of(label)[0] == ("UPOS", upos)


def test_labels_are_written_to_their_columns() -> None:
    """Protects the columns that `tag` writes, and those that it leaves alone."""
    file = raw_content(TEXT.encode(), "x.conllu", "conllu", conllu_layout("upos+feats"))
    line = file.reader.labelled(TEXT.splitlines(keepends=True)[0], "UPOS=ADJ|Degree=Cmp", [])
    assert line == "1\tnuri\tnur\tADJ\tNN\tDegree=Cmp\t_\t_\t_\t_\n"
    assert file.reader.labelled(line, "UPOS=ADJ", []).split("\t")[5] == "_"
    with pytest.raises(InputError, match="NOUN"):
        file.reader.labelled(line, "NOUN", [])


@pytest.mark.parametrize(
    ("old", "new", "tag", "message"),
    [
        ("NOUN", "_", "upos+feats", r"x\.conllu:1: expected a label in UPOS, got '_'"),
        ("ADP", "A|B", "upos+feats", r"x\.conllu:3: UPOS is 'A\|B'"),
        ("Mood=Ind", "Mood", "upos+feats", r"x\.conllu:4: FEATS is no list of features"),
        ("Mood=Ind", "UPOS=Ind", "upos+feats", r"x\.conllu:4: .*twice"),
    ],
)
def test_what_is_no_bundle_is_refused_with_its_line(tmp_path, old: str, new: str, tag: str, message: str) -> None:
    """Protects messages that name the line."""
    path = tmp_path / "x.conllu"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_corpus(path, tag)


@pytest.mark.parametrize("tag", ["upos+", "upos+form", "upos+upos", "upos+12", "0+3"])
def test_a_bundle_of_no_columns_of_labels_is_refused(tag: str) -> None:
    """Protects against columns that hold no labels."""
    with pytest.raises(InputError, match="tag="):
        conllu_layout(tag)


def test_a_label_that_is_no_bundle_is_refused_by_name() -> None:
    """Protects the message that names the label."""
    assert not is_bundle("NOUN")
    assert not is_bundle("A=1|A=2")
    with pytest.raises(InputError, match="'NOUN'"):
        components_of("NOUN")


def test_parts_are_compared_as_in_the_shared_task() -> None:
    """Protects UFeats and AllTags, counted by hand."""
    true = [["UPOS=N|XPOS=a|Case=Nom|Own=1", "UPOS=V|XPOS=b|Mood=Ind", "UPOS=X|XPOS=c"]]
    pred = [["UPOS=N|XPOS=a|Case=Nom|Own=2", "UPOS=V|XPOS=c|Mood=Imp", "UPOS=X|XPOS=c|Case=Nom"]]
    found = morphology(true, pred)
    right = {name: share.n_right for name, share in found.columns.items()}
    assert right == {"label": 0, "UPOS": 3, "XPOS": 2, "UFeats": 1, "AllTags": 1}  # Own is not universal
    assert found.features["Case"] == (2, 3, 1, 1)
    assert found.features["Own"] == (2, 3, 0, 1)
    assert "AllTags" not in morphology([["UPOS=N"]], [["UPOS=N"]]).columns


def test_parts_of_labels_stand_for_those_that_agree() -> None:
    """Protects two tagsets at once: sets of labels that have all components, one label alone, and none."""
    whole = ["UPOS=N|Case=Nom", "UPOS=N|Case=Acc", "UPOS=V", "_"]
    found = open_bundles([["UPOS=N", "UPOS=V"], ["UPOS=X", "UPOS=N|Case=Acc"]], whole)
    assert found == [[frozenset(whole[:2]), "UPOS=V"], ["UPOS=X", "UPOS=N|Case=Acc"]]


def test_a_part_with_features_says_all_of_them() -> None:
    """Protects columns that are there: more features than a word has do not agree with it, and `_` is none."""
    whole = ["UPOS=N|Case=Nom", "UPOS=N|Case=Nom|Number=Sing", "UPOS=A|Case=Nom", "UPOS=V", "UPOS=P"]
    found = open_bundles([["Case=Nom", "_", "Case=Nom|Number=Sing"]], whole, ["UPOS"])
    assert found == [[frozenset([whole[0], whole[2]]), frozenset(whole[3:]), whole[1]]]
