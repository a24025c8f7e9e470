"""The files around the library: changes, workflows, templates, metadata."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
KINDS = {entry["directory"] for entry in PROJECT["tool"]["towncrier"]["type"]}

if not (ROOT / ".github").exists():  # the tests of a wheel
    pytest.skip("not in a checkout", allow_module_level=True)


def test_changes_have_this_version() -> None:
    """At the top, and the first one too."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\S+)$", changes, re.MULTILINE)
    assert versions[0] == PROJECT["project"]["version"]
    assert versions[-1] == "0.1.0"
    assert PROJECT["tool"]["towncrier"]["start_string"] in changes


def test_news_has_known_kinds() -> None:
    """`<topic>.<kind>.md`, one sentence or more."""
    for path in (ROOT / "changelog.d").glob("*.md"):
        if path.name != "README.md":
            assert path.stem.split(".")[-1] in KINDS, path
            assert path.read_text(encoding="utf-8").strip(), path


def test_every_python_that_is_claimed_is_tested() -> None:
    """Classifiers, the matrix of the workflow and the script agree."""
    yaml = pytest.importorskip("yaml")
    claimed = [
        found[1]
        for text in PROJECT["project"]["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text))
    ]
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["wheel"]["strategy"]["matrix"]["python"] == claimed
    script = (ROOT / "tools/test_wheel.py").read_text(encoding="utf-8")
    assert all(f'"python{version}"' in script for version in claimed)
    assert PROJECT["project"]["requires-python"] == f">={claimed[0]}"


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_and_templates_are_yaml(path: Path) -> None:
    """With the keys that they need."""
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.parent.name == "workflows":
        assert found["permissions"] == {"contents": "read"}  # a job asks for more by itself
        assert all(job["runs-on"] and job["steps"] for job in found["jobs"].values())
    elif path.parent.name == "ISSUE_TEMPLATE" and path.name != "config.yml":
        assert {"name", "description", "body"} <= set(found)


def test_commands_of_workflows_and_contributing_exist() -> None:
    """Targets of make, and scripts."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")]
    texts += [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")]
    for text in texts:
        asked = re.findall(r"^\s*(?:- run: )?make (\w+)|`make (\w+)", text, re.MULTILINE)
        assert {name for pair in asked for name in pair if name} <= targets
        for script in re.findall(r"python (\w+/\w+\.py)", text):
            assert (ROOT / script).exists(), script


def test_the_extras_that_docs_name_exist() -> None:
    """In the table of the page on installation."""
    page = (ROOT / "docs/installation.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert named <= set(PROJECT["project"]["optional-dependencies"])


def test_tests_that_contributing_names_exist() -> None:
    """Files and folders behind pytest."""
    named = re.findall(r"pytest (tests/\S+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(named) >= 2
    assert all((ROOT / name).exists() for name in named), named


def test_news_is_in_the_order_of_kinds() -> None:
    """Added before fixed, with an empty line between."""
    towncrier = pytest.importorskip("towncrier._builder")
    template = (ROOT / "changelog.d/template.jinja").read_text(encoding="utf-8")
    kinds = {
        entry["directory"]: {"name": entry["name"], "showcontent": True}
        for entry in PROJECT["tool"]["towncrier"]["type"]
    }
    news = {"": {"fixed": {"It is mended.": []}, "added": {"It is new.": []}}}
    version = {"name": "", "version": "1", "date": ""}
    text = towncrier.render_fragments(template, "", news, kinds, ["", ""], wrap=False, versiondata=version)
    assert text.strip() == "### Added\n\n- It is new.\n\n### Fixed\n\n- It is mended."


def test_a_python_that_does_not_start_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be names on the path that pyenv refuses; what it installed is found in its folder."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    test_wheel = __import__("test_wheel")
    for folder, code in {"shims": 127, "versions/3.12.9/bin": 0}.items():
        (tmp_path / folder).mkdir(parents=True)
        program = tmp_path / folder / "python3.12"
        program.write_text(f"#!/bin/sh\nexit {code}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setattr(test_wheel, "PYTHONS", ["python3.12", "python3.99"])
    assert test_wheel.pythons() == [str(tmp_path / "versions/3.12.9/bin/python3.12")]
