"""The documentation site, as far as it can be checked without building it (`make docs` does that, with Sphinx)."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import vcrf

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools"))

from docstrings import converted, escaped  # noqa: E402
from reference import LISTED, MODULES, api_pages, command_page, public_names  # noqa: E402

PAGES = sorted(DOCS.rglob("*.md"))
# Made by the build, or by Sphinx's extensions.
GENERATED = {"auto_examples/index", "api/index", "commands", "contributing", "whats_new", "SECURITY", "CODE_OF_CONDUCT"}
# Rooms whose names are for those who work on the library; docs/architecture.md leads to them.
INNER = {
    "vcrf.problem", "vcrf.kernels", "vcrf.lattice", "vcrf.structures", "vcrf.solvers", "vcrf.surrogates",
    "vcrf.arguments", "vcrf.estimators", "vcrf.experiments", "vcrf.cli", "vcrf.labelling", "vcrf.spacy", "vcrf.web",
}  # fmt: skip


def test_every_package_with_public_names_is_in_the_reference() -> None:
    """A new one has to be entered, or named as an inner room."""
    packages = {f"vcrf.{found.name}" for found in pkgutil.iter_modules(vcrf.__path__) if found.ispkg}
    with_names = {name for name in packages - INNER if hasattr(importlib.import_module(name), "__all__")}
    assert with_names <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_place(module: str) -> None:
    """On the page of its module, or on that of another one that has it too."""
    page = api_pages()[f"api/{module}.rst"]
    names = public_names(module)
    assert names
    assert all(re.search(rf"\b{name}\b", page) for name in names)
    assert all(getattr(importlib.import_module(module), name).__doc__ for name in names)


def test_names_that_are_listed_exist() -> None:
    """Modules without `__all__` have their names in a list."""
    for module, names in LISTED.items():
        assert all(hasattr(importlib.import_module(module), name) for name in names)


def test_every_command_is_in_the_reference() -> None:
    """With its help."""
    page = command_page()
    for name in ("demo", "train", "tag", "eval", "calibrate", "trust", "suggest", "convert", "info"):
        assert f"## vcrf {name}\n" in page
    assert page.count("--help") >= 14
    assert max(len(line) for line in page.splitlines() if line.startswith("  -")) <= 80


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    plain = re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda path: path.name)
def test_anchors_exist(page: Path) -> None:
    """Links to a part of a page lead to a heading that is there."""
    for target, anchor in re.findall(r"\]\(([^)#:\s]*\.md)?#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        aim = page.parent / target if target else page
        assert anchor in anchors(aim), f"{page.name} links to {target}#{anchor}"


def test_every_page_is_in_a_table_of_contents() -> None:
    """And every entry of a table is a page."""
    entries = set()
    for page in PAGES:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            lines = [line for line in block.splitlines() if line and not line.startswith(":")]
            folder = page.parent.relative_to(DOCS).as_posix()
            entries |= {line if folder == "." else f"{folder}/{line}" for line in lines}
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES} - {"index"}
    assert pages <= entries
    assert entries - pages == GENERATED


def test_formulas_of_docstrings_are_literal() -> None:
    """And what would be markup elsewhere is protected."""
    assert converted(["Minimises", "", "    |w|_1 + a * b", "", "over w_."]) == [
        "Minimises", "", "::", "", "    |w|_1 + a * b", "", "over w\\_.",
    ]  # fmt: skip
    assert escaped("c |w| and `|w|` * 2") == "c \\|w\\| and `|w|` \\* 2"
    parameters = ["Parameters", "----------", "x_ : int", "    a * b", "Examples", "--------", ">>> a * b"]
    assert converted(parameters) == [
        "Parameters", "----------", "x_ : int", "    a \\* b", "Examples", "--------", ">>> a * b",
    ]  # fmt: skip
