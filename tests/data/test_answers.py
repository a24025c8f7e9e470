"""Suggestions in CoNLL-U: labels that nobody has accepted are not read."""

from __future__ import annotations

import io

import pytest

from vcrf.data import read_corpus
from vcrf.errors import InputError


def sentence(*comments: str) -> str:
    """A sentence of one word."""
    return "".join(f"{comment}\n" for comment in comments) + "1\ta\t_\tX\t" + "\t".join("_" * 6) + "\n\n"


def suggested(answer: str) -> str:
    """One with an answer."""
    return sentence("# usefulness = 1", f"# answer = {answer}")


def test_accepted_sentences_are_read_and_open_ones_are_told() -> None:
    """Rejected ones go without a word; what is no suggestion is a person's."""
    content = suggested("accept") + sentence() + suggested("none") + suggested("reject") + suggested("none")
    with pytest.warns(UserWarning, match="2 of 5 sentences have no answer yet and are left out"):
        corpus = read_corpus(io.StringIO(content))
    assert corpus.sources == ["<stream>:3", "<stream>:5"]


def test_comments_of_others_mean_nothing() -> None:
    """A corpus of questions may have answers of its own."""
    assert len(read_corpus(io.StringIO(sentence("# answer = none") + sentence("# usefulness = 2")))) == 2


def test_a_file_that_nobody_has_answered_is_refused() -> None:
    """With what to do."""
    with pytest.raises(InputError, match=r"<stream>: no sentence has an answer yet.* `# answer = accept` above"):
        read_corpus(io.StringIO(suggested("none") * 2))


def test_other_words_are_named_by_their_line() -> None:
    """A word that we do not know would be taken for a rejection."""
    with pytest.raises(InputError, match="<stream>:6: the answer must be accept, reject or ignore, got 'yes'"):
        read_corpus(io.StringIO(suggested("accept") + suggested("yes")))
