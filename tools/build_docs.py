"""Build the documentation site: python tools/build_docs.py [--fast]; the result is build/docs/html.

Pages are copied to build/docs/source, where the generated ones join them: the reference of names and commands, changes,
contributing, and the tables of results. Nothing is fetched: the build works without a network. A warning is an error.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from reference import api_pages, command_page

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "docs"
SOURCE = BUILD / "source"
# Pages of the root that are pages of the site too, under this name.
FROM_ROOT = {
    "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "whats_new.md", "SECURITY.md": "SECURITY.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
}  # fmt: skip
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:\s]+)((?:#[^)\s]*)?)\)")


def collect() -> None:
    """Put all pages into one folder."""
    for path in SOURCE.glob("*"):
        if path.name != "auto_examples":  # examples that have not changed are not run again
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(ROOT / "docs", SOURCE, dirs_exist_ok=True)
    # Examples run in a copy: what they write stays in build.
    shutil.copytree(ROOT / "examples", BUILD / "examples", dirs_exist_ok=True)
    for name, page in FROM_ROOT.items():
        shutil.copyfile(ROOT / name, SOURCE / page)
    for path in (ROOT / "results").rglob("*.md"):
        target = SOURCE / "results" / path.relative_to(ROOT / "results")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("---\norphan: true\n---\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    for name, text in {**api_pages(), "commands.md": command_page()}.items():
        (SOURCE / name).parent.mkdir(exist_ok=True)
        (SOURCE / name).write_text(text, encoding="utf-8")


def mend() -> None:
    """Links between pages of the site stay links; other files of the repository are named."""
    for page in SOURCE.rglob("*.md"):
        if "auto_examples" in page.parts:
            continue
        text = page.read_text(encoding="utf-8")
        page.write_text(_LINK.sub(lambda found, page=page: _link(found, page), text), encoding="utf-8")


def _link(found: re.Match[str], page: Path) -> str:
    text, target, anchor = found[1], found[2], found[3]
    for old, new in (("../results/", "results/"), ("../docs/", "../"), ("docs/", "")):
        if target.startswith(old) and not (page.parent / target).exists():
            target = new + target.removeprefix(old)
            break
    name = Path(target).name
    if name in FROM_ROOT and not (page.parent / target).exists():
        target = "../" * (len(page.relative_to(SOURCE).parts) - 1) + FROM_ROOT[name]
    if (page.parent / target).exists():
        return f"[{text}]({target}{anchor})"
    return f"{text} (`{found[2].replace('../', '')}`)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="do not run the examples of the gallery")
    options = parser.parse_args()
    shutil.rmtree(BUILD / "html", ignore_errors=True)
    collect()
    mend()
    extra = ["-D", "plot_gallery=False"] if options.fast else []
    command = [
        sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-d", str(BUILD / "doctrees"), *extra,
        str(SOURCE), str(BUILD / "html"),
    ]  # fmt: skip
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        print(json.dumps({"site": str((BUILD / "html" / "index.html").relative_to(ROOT))}))
    return code


if __name__ == "__main__":
    sys.exit(main())
