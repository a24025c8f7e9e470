"""The rooms of the package: who may import whom, at the top of a file or inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import vcrf

PACKAGE = Path(vcrf.__file__).parent

# From the ground up: a room imports from those before it. Those of one line know nothing of each other.
STOREYS = [
    ["types", "errors"],
    ["machine", "files", "strings", "workers", "processes", "scratch", "cluster"],
    ["plots", "page", "kernels", "automata", "data"],
    ["lattice", "families", "losses"],
    ["classes", "graphs"],
    ["problem"],
    ["penalties", "structures", "decoding"],
    ["surrogates", "trust"],
    ["solvers"],
    ["model"],
    ["arguments"],
    ["metrics"],
    ["complexity", "tuning", "labelling", "installation"],
    ["estimators"],
    ["compat", "experiments", "spacy", "web"],
    ["cli"],
    ["__main__"],
]
STOREY = {room: number for number, rooms in enumerate(STOREYS) for room in rooms}
# Names that the package hands out itself, late: `from vcrf import load`.
ROOT = "vcrf"


def room_of(module: str) -> str:
    """The room of a module: vcrf.solvers.result is in solvers."""
    return module.split(".")[1] if "." in module else ROOT


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line and module of each import of our own, but for those that only a type checker sees."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unseen = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == ROOT and id(node) not in unseen:
            if node.module == ROOT:
                yield from ((node.lineno, f"{ROOT}.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, str(node.module)


def modules() -> list[Path]:
    """Every file of the package but its front door."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def test_every_room_has_its_storey() -> None:
    """A new room has to be given one."""
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in modules()}
    assert rooms == set(STOREY)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_lead_down(path: Path) -> None:
    """From a room to the rooms below, lazy imports included."""
    here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    wrong = [
        f"{path.name}:{line} imports {module}"
        for line, module in imports_of(path)
        if room_of(module) in STOREY and room_of(module) != here and STOREY[room_of(module)] >= STOREY[here]
    ]
    assert not wrong
