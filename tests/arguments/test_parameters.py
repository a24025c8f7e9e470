"""The table of parameters: signatures, docstrings, options and messages are what it says."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks

import vcrf
from commands import Call
from vcrf import M3N, VCRF, StructSVM, VExponential, VStructBoost
from vcrf.arguments.kinds import Choice, Flag, Integer, Kind, Number, Other
from vcrf.arguments.parameters import ESTIMATOR, FUNCTIONS, GRAPHS, LABELS, PARAMETERS, Parameter, check
from vcrf.cli.errors import in_options
from vcrf.errors import InputError

ESTIMATORS = [VCRF, VStructBoost, VExponential, M3N, StructSVM]
PACKAGE = Path(vcrf.__file__).parent
X, Y = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]]
# Values that a kind does not take.
WRONG: dict[type, list[Any]] = {
    Integer: ["a", 1.5, True, -1, [1]],
    Number: ["a", float("nan"), float("inf"), True, [1.0]],
    Flag: ["a", 2],
    Choice: ["nonsense", ""],
    Other: [],
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_signature_is_the_table(estimator: type[VCRF]) -> None:
    """Keywords alone, each written out, with the defaults of the table; what is given is kept as it is."""
    _, *found = inspect.signature(estimator.__init__).parameters.values()
    assert [(p.name, p.default) for p in found] == [(p.name, p.default) for p in ESTIMATOR]
    assert {p.kind for p in found} == {inspect.Parameter.KEYWORD_ONLY}
    given = {parameter.name: object() for parameter in ESTIMATOR}
    tagger = estimator(**given)
    assert all(getattr(tagger, name) is value for name, value in given.items())
    assert estimator().set_params(**given).get_params(deep=False) == given
    assert clone(estimator(tags=3)).tags == 3


def test_names_and_options_are_unique() -> None:
    """Of all parameters."""
    listed = (*ESTIMATOR, *FUNCTIONS, *GRAPHS, *LABELS)
    assert len(PARAMETERS) == len(listed)
    flags = [parameter.flag for parameter in listed if parameter.flag]
    assert len(set(flags)) == len(flags)


def test_the_docstring_has_every_parameter() -> None:
    """With its type, in the order of the signature."""
    text = inspect.getdoc(VCRF) or ""
    section = text[text.index("Parameters\n") : text.index("Attributes\n")]
    assert re.findall(r"^(\w+) : ", section, re.MULTILINE) == [parameter.name for parameter in ESTIMATOR]
    assert 'norm : "l1", "l2", "elastic", "lp", "group" or "family", optional\n' in section
    assert "None means 0.09 / sentences; in the recipe of the paper 0.5 / sentences." in " ".join(section.split())
    for parameter in ESTIMATOR:
        assert parameter.help in " ".join(section.split())


def test_the_command_line_has_the_help_of_the_table() -> None:
    """Every parameter with an option is one of `vcrf train`."""
    text = " ".join(Call()("train", "--help-all").stdout.split())
    for parameter in ESTIMATOR:
        if parameter.flag:
            assert parameter.option in text
            assert " ".join(parameter.help.split()) in text


def takes_nothing_wrong() -> Iterator[tuple[str, Any]]:
    """Parameters and values that they do not take."""
    for parameter in ESTIMATOR:
        for value in WRONG[type(parameter.kind)]:
            yield parameter.name, value


@pytest.mark.parametrize(("name", "value"), list(takes_nothing_wrong()))
def test_a_wrong_value_is_refused_by_name(name: str, value: Any) -> None:
    """By the table, and by `fit`; on the command line by the name of the option."""
    if PARAMETERS[name].kind.accepts(value):
        pytest.skip("a number that this one takes")
    with pytest.raises(InputError) as caught:
        VCRF(**{name: value}).fit(X, Y)
    parameter = PARAMETERS[name]
    assert str(caught.value) == f"`{name}` must be {parameter.kind.expected}, got {value!r}."
    if parameter.flag:
        assert in_options(str(caught.value)).startswith(f"{parameter.option} must be ")


@pytest.mark.parametrize("parameter", ESTIMATOR, ids=lambda parameter: parameter.name)
def test_the_default_is_taken(parameter: Parameter) -> None:
    """None where it is the default, or where what is used checks it."""
    check(parameter.name, parameter.default)
    if parameter.default is not None and not parameter.kind.accepts(None):
        with pytest.raises(InputError, match=f"`{parameter.name}` must be"):
            check(parameter.name, None)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Integer("", 1, 3), [1, 3], [0, 4, 2.0, "2", True, None]),
        (Number("", 0.0), [0, 0.0, 1e300], [-1e-300, float("inf"), float("nan"), "0", False]),
        (Number("", 0.0, 1.0, is_open=True), [0.5], [0.0, 1.0]),
        (Number(""), [-5, 0.1], [float("-inf"), 10**400]),
        (Flag(), [True, False], [0, 1, None, "yes"]),
        (Choice(("a", "b")), ["a", "b"], ["c", None, 1, ["a"]]),
        (Choice(("a",), "a list"), ["a", [1], None], ["b"]),
        (Other("anything"), [None, "x", 3], []),
    ],
)
def test_kinds(kind: Kind, good: list[Any], bad: list[Any]) -> None:
    """Limits, openness, and that True is no number."""
    assert all(kind.accepts(value) for value in good)
    assert not any(kind.accepts(value) for value in bad)


def test_messages_are_rendered_for_the_command_line() -> None:
    """What is no parameter, or has no option, stays as it is; so do words of English."""
    assert in_options("x: `tag='xpos'`, pass `format=\"columns\"` or `split=dev`.") == (
        "x: --tag xpos, pass --input-format columns or --split dev."
    )
    assert (
        in_options("Use norm='l1', inference='auto' or tags=1, a=b")
        == "Use --norm l1, --inference auto or --tags 1, a=b"
    )
    assert in_options("`factors` and `n_jobs`, `temperature` and `vcrf train`, the tags must be") == (
        "--factors and --threads, `temperature` and `vcrf train`, the tags must be"
    )
    for parameter in PARAMETERS.values():
        named = in_options(f"`{parameter.name}` must be")
        assert named == (f"{parameter.option} must be" if parameter.flag else f"`{parameter.name}` must be")


def texts_of_messages(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string that is raised or warned of."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        is_warning = isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn"
        if isinstance(node, ast.Raise) or is_warning:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield inner.lineno, inner.value


# A name that is no word of English, and the subject of a message.
_BARE = re.compile(
    rf"(?<![`\w])(?:{'|'.join(name for name in PARAMETERS if '_' in name)})(?![`\w=(])"
    rf"|^(?:{'|'.join(PARAMETERS)}) must\b"
)
_FILES = [str(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py"))]


@pytest.mark.parametrize("name", _FILES)
def test_messages_write_parameters_as_code(name: str) -> None:
    """Otherwise the command line could not put its options in their place."""
    wrong = [f"{line}: {text}" for line, text in texts_of_messages(PACKAGE / name) if _BARE.search(text)]
    assert not wrong


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    "convention",
    [
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
    ],
    ids=lambda check: check.__name__,
)
def test_conventions_of_scikit_learn(estimator: type[VCRF], convention: Any) -> None:
    """Those about parameters; the others want arrays of numbers."""
    convention(estimator.__name__, estimator())
