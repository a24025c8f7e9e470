"""Ready sets of families: the paper's H(k1, k2, k3), and the set that taggers use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vcrf.families.family import Family
from vcrf.families.templates import BIAS, END, START, Template

if TYPE_CHECKING:
    from vcrf.classes import WordClasses

# Beginnings of the ways to the classes of a binary tree: wider classes.
_TREE_LEVELS = (4, 6, 10)


def windows(k1: int) -> list[tuple[tuple[int, str], ...]]:
    """All windows x[s-t+1 .. s+r] of t + r = k1 words, as parts of a template.

    t = 0 gives the window that starts just after the position.
    """
    return [tuple((offset, "word") for offset in range(1 - t, k1 - t + 1)) for t in range(k1, -1, -1)] if k1 else [()]


def affixes(k3: int) -> list[tuple[tuple[int, str], ...]]:
    """All pairs of a suffix of length t and a prefix of length r with t + r = k3."""
    splits = [(t, k3 - t) for t in range(k3, -1, -1)]
    return [
        tuple((0, f"{kind}:{length}") for kind, length in (("suffix", t), ("prefix", r)) if length) for t, r in splits
    ]


def paper_families(words: int = 2, tags: int = 2, affix: int = 3) -> list[Family]:
    """H(k1, k2, k3) for 0 <= k1 <= words, 1 <= k2 <= tags, 0 <= k3 <= affix."""
    return [
        Family(f"H({k1},{k2},{k3})", tuple(Template(w + a) for w in windows(k1) for a in affixes(k3)), k2)
        for k2 in range(1, tags + 1)
        for k1 in range(words + 1)
        for k3 in range(affix + 1)
    ]


def transition_families(tags: int = 2) -> list[Family]:
    """Plain tag patterns of length 2 .. tags, the first label, and the last 1 .. tags-1 labels of a sentence.

    A pattern belongs to the token that it ends at, so that of START only patterns of one label occur.
    """
    plain = [Family(f"tags:{k}", (BIAS,), k) for k in range(2, tags + 1)]
    ends = [Family(f"ends:{k}", (START, END), k) for k in range(1, max(tags, 2))]
    return plain + ends


def default_families(words: int | None = None, tags: int | None = None, affix: int | None = None) -> list[Family]:
    """What taggers look at: the word, its affixes and shapes, its neighbours, and tag patterns.

    Chosen by cross-validation inside the training parts of six treebanks: docs/accuracy.md.

    Words of neighbours and pairs of words are many and mostly rare: they pay more (`Family.factor`).

    `words` limits how far neighbours reach (2), `tags` the length of tag patterns (2), `affix` affixes (8).
    """
    reach, order, longest = (
        (2 if words is None else words),
        (2 if tags is None else tags),
        (8 if affix is None else affix),
    )
    own = [
        Family("bias", (BIAS,)),
        Family("word", (Template(((0, "word"),)),)),
        Family("lower", (Template(((0, "lower"),)),)),
        Family("shape", (Template(((0, "shape"),)),)),
        Family("long_shape", (Template(((0, "long_shape"),)),)),
        Family("kind", (Template(((0, "kind"),)),)),
        Family("length", (Template(((0, "length"),)),)),
        # A capital at the start of a sentence says little.
        Family("first", (Template(((-1, "boundary"), (0, "kind")), pad=True),)),
        *(_affix_family(n, 0) for n in range(1, longest + 1)),
    ]
    neighbours = [
        Family(f"word[{side * d:+d}]", (Template(((side * d, "word"),), pad=True),), factor=1.5)
        for d in range(1, reach + 1)
        for side in (-1, 1)
    ]
    if reach:
        neighbours += [_affix_family(n, side) for n in range(2, min(longest, 3) + 1) for side in (-1, 1)]
        neighbours += [Family(f"shape[{side:+d}]", (Template(((side, "shape"),), pad=True),)) for side in (-1, 1)]
        neighbours += [
            Family("kinds", (Template(tuple((d, "kind") for d in (-1, 0, 1)), pad=True),)),
            Family(
                "word pairs", tuple(Template(((d, "word"), (d + 1, "word")), pad=True) for d in (-1, 0)), factor=2.0
            ),
        ]
    # No tag pairs with words or affixes: they cost time and bring nothing that holds over languages.
    return own + neighbours + transition_families(order)


def class_families(classes: WordClasses) -> list[Family]:
    """The class of the word and of its neighbours; of a tree of classes also wider ones."""
    readings = ["class", *(f"class:{n}" for n in _TREE_LEVELS if classes.is_tree)]
    return [
        Family(f"{reading}[{d:+d}]" if d else reading, (Template(((d, reading),), pad=True, classes=classes),))
        for reading in readings
        for d in (0, -1, 1)
    ]


def _affix_family(length: int, offset: int) -> Family:
    where = f"[{offset:+d}]" if offset else ""
    kinds = ("suffix", "prefix") if offset == 0 else ("suffix",)
    return Family(f"affix:{length}{where}", tuple(Template(((offset, f"{kind}:{length}"),)) for kind in kinds))


def component_families(families: list[Family]) -> list[Family]:
    """For each family of single labels one with the same attributes on components of labels."""
    return [
        Family(f"components:{family.name}", family.sources, 1, family.factor, on_components=True)
        for family in families
        if family.tags == 1
    ]


def component_pair_families(components: Sequence[str]) -> list[Family]:
    """For each component the pairs of its values at neighbouring words, as Case=Nom before Case=Nom."""
    return [Family(f"component-pairs:{name}", (BIAS,), 2, on_components=True, component=name) for name in components]
