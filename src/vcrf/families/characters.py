"""Shapes and kinds of many words at once, from the classes of their characters.

The same as `WORD_FUNCTIONS` in `families.text` says word by word, many times as fast.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

from vcrf.types import Bools, Ints, UInts8, UInts32

KINDS = ("letters", "hyphen", "punctuation", "title", "upper", "digit")

_UPPER, _LOWER, _TITLE, _DIGIT, _LETTER, _MARK, _PUNCTUATION, _KNOWN = (1 << i for i in range(8))
_N_CODE_POINTS = 0x110000
# In the table of lower case: what no text has had yet, and what is not in lower case by itself.
_UNSEEN, _SPECIAL = _N_CODE_POINTS, _N_CODE_POINTS + 1
# Word functions that ask for a character, by its flag; a hyphen has none.
FLAGS = {"has_digit": _DIGIT, "has_upper": _UPPER, "has_hyphen": 0}


def shapes(ptr: Ints, code_points: UInts32) -> tuple[Ints, UInts32]:
    """Shape of each word, encoded as the words are: character classes with runs shortened."""
    long = long_shapes(code_points)
    is_kept = np.ones(len(long), bool)
    # Line ends are not shortened: "." of the pattern that says what a run is does not match them.
    is_kept[1:] = (long[1:] != long[:-1]) | (long[1:] == ord("\n"))
    is_kept[ptr[:-1][ptr[:-1] < ptr[1:]]] = True
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(is_kept)])[ptr], _read_only(long[is_kept])


def long_shapes(code_points: UInts32) -> UInts32:
    """Character class of each character: X upper, x lower, d digit, c other letters, else itself."""
    named = _shape_characters()[_flags(code_points)]
    return _read_only(np.where(named > 0, named, code_points))


def has(name: str, ptr: Ints, code_points: UInts32) -> Bools:
    """Whether each word has a digit, an upper-case letter or a hyphen: a name in FLAGS."""
    flag = FLAGS[name]
    found = _flags(code_points) & flag > 0 if flag else code_points == ord("-")
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(found)])[ptr]
    return np.asarray(total[1:] > total[:-1])


def lowered(code_points: UInts32) -> tuple[UInts32, bool]:
    """Each character in lower case, and whether that is the lower case of the words.

    It is not where the lower case of a character is longer than one, or depends on its neighbours (sigma).
    """
    table = _lower_table()
    found = table[code_points]
    if np.any(found == _UNSEEN):
        new = np.unique(code_points[found == _UNSEEN])
        table[new] = [_lower(chr(code)) for code in new.tolist()]
        found = table[code_points]
    return _read_only(found), not bool(np.any(found == _SPECIAL))


def _lower(character: str) -> int:
    lower = character.lower()
    return _SPECIAL if len(lower) != 1 or character == "\N{GREEK CAPITAL LETTER SIGMA}" else ord(lower)


def kinds(ptr: Ints, code_points: UInts32) -> Ints:
    """Number in KINDS of the kind of each word."""
    out = np.zeros(len(ptr) - 1, np.int64)
    is_word = ptr[:-1] < ptr[1:]
    if not is_word.any():
        return out
    starts, flags = ptr[:-1][is_word], _flags(code_points)
    some, every = np.bitwise_or.reduceat(flags, starts), np.bitwise_and.reduceat(flags, starts)
    has_hyphen = np.logical_or.reduceat(code_points == ord("-"), starts)
    is_upper = (some & (_UPPER | _LOWER | _TITLE) == _UPPER) & (np.diff(ptr)[is_word] > 1)
    # The first that holds decides: the weakest comes first here, the strongest last.
    kind = has_hyphen.astype(np.int64)
    kind[every & _PUNCTUATION > 0] = KINDS.index("punctuation")
    kind[flags[starts] & _UPPER > 0] = KINDS.index("title")
    kind[(flags[starts] & _UPPER > 0) & is_upper] = KINDS.index("upper")
    kind[some & _DIGIT > 0] = KINDS.index("digit")
    out[is_word] = kind
    return out


def _read_only(code_points: UInts32) -> UInts32:
    """Like the words' own code points: kernels are compiled for one kind of array."""
    code_points.flags.writeable = False
    return code_points


def _flags(code_points: UInts32) -> UInts8:
    table = _flag_table()
    flags = table[code_points]
    if not flags.all():
        unknown = np.unique(code_points[flags == 0])
        table[unknown] = [_character_flags(chr(code)) for code in unknown.tolist()]
        flags = table[code_points]
    return flags


def _character_flags(character: str) -> int:
    category = unicodedata.category(character)[0]
    claims = {
        _UPPER: character.isupper(),
        _LOWER: character.islower(),
        _TITLE: character.istitle() and not character.isupper(),
        _DIGIT: character.isdigit(),
        _LETTER: character.isalpha(),
        _MARK: category == "M",
        _PUNCTUATION: category in "PS",
        _KNOWN: True,
    }
    return sum(flag for flag, is_so in claims.items() if is_so)


@cache
def _flag_table() -> UInts8:
    """Flags of every code point, 0 where no text has had it yet."""
    return np.zeros(_N_CODE_POINTS, np.uint8)


@cache
def _lower_table() -> UInts32:
    return np.full(_N_CODE_POINTS, _UNSEEN, np.uint32)


@cache
def _shape_characters() -> UInts32:
    """For all flags of a character what stands for it in a shape, 0 = itself."""
    first = [(_UPPER, "X"), (_LOWER, "x"), (_DIGIT, "d"), (_LETTER, "c"), (_MARK, "c")]
    return np.array([next((ord(c) for flag, c in first if flags & flag), 0) for flags in range(256)], np.uint32)
