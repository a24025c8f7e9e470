"""Pages of the reference that are generated: every public name, and every command with its help."""

from __future__ import annotations

from importlib import import_module

# Module -> what it is for; the names are those of its `__all__`, or listed here.
MODULES = {
    "vcrf": "The front door: estimators, corpora, loading.",
    "vcrf.data": "Reading labelled sentences, and inventing them.",
    "vcrf.labelling.explain": "Why a token has its label.",
    "vcrf.labelling.reasons": "Explanations in plain words.",
    "vcrf.labelling.drawing": "A picture of a labelled sentence.",
    "vcrf.metrics": "Errors, entities, intervals, comparisons.",
    "vcrf.trust": "Promises from held-out sentences.",
    "vcrf.tuning": "What `tune` finds.",
    "vcrf.families": "Families of features and templates.",
    "vcrf.classes": "Word classes from raw text.",
    "vcrf.losses": "Task losses as automata.",
    "vcrf.decoding": "Constraints on label sequences.",
    "vcrf.graphs": "Graphs: building, reading, drawing.",
    "vcrf.compat": "In place of sklearn-crfsuite and python-crfsuite.",
    "vcrf.compat.pycrfsuite": "In place of python-crfsuite.",
    "vcrf.complexity": "Factor graph complexities and bounds.",
    "vcrf.automata": "Weighted automata.",
    "vcrf.penalties": "Penalties of families.",
    "vcrf.model": "Trained models.",
    "vcrf.errors": "Errors and warnings.",
}
# What a stranger looks for first.
FIRST = [
    "VCRF", "GraphCRF", "MultiLabelCRF", "VStructBoost", "VExponential", "M3N", "StructSVM", "MaxCRF", "MaxStructBoost",
    "MaxExponential", "Corpus", "Graph",
    "read_corpus", "load", "load_tagger", "vote", "learn_vote",
]  # fmt: skip
LISTED = {
    "vcrf.labelling.explain": ["explain", "TokenExplanation", "Contribution"],
    "vcrf.labelling.reasons": ["reasons", "question", "Reason"],
    "vcrf.labelling.drawing": ["draw_sentence", "sentence_svg"],
    "vcrf.errors": [
        "VcrfError", "InputError", "BudgetError", "LargeProblemWarning", "NotFittedError", "WriteError",
        "MissingExtraError",
    ],
}  # fmt: skip


def public_names(module: str) -> list[str]:
    """Classes and functions of a module that users may rely on; constants and modules are described in its text."""
    names = LISTED.get(module) or [name for name in import_module(module).__all__ if not name.startswith("__")]
    found = [name for name in names if callable(getattr(import_module(module), name))]
    return sorted(found, key=FIRST.index) if module == "vcrf" else found


def api_pages() -> dict[str, str]:
    """File name -> text, reStructuredText."""
    title = "API reference"
    rows = "\n".join(f"   {module}" for module in MODULES)
    pages = {
        "api/index.rst": f"{title}\n{'=' * len(title)}\n\nEverything public, by module.\n\n"
        + "\n".join(f"- :doc:`{module}`: {text}" for module, text in MODULES.items())
        + f"\n\n.. toctree::\n   :hidden:\n\n{rows}\n"
    }
    homes: dict[int, str] = {}
    for module, text in MODULES.items():
        pages[f"api/{module}.rst"] = _module_page(module, text, homes)
    return pages


def _module_page(module: str, text: str, homes: dict[int, str]) -> str:
    """One module; what another one has shown before is named with its place (`homes`, by the object's id)."""
    new, known = [], []
    for name in public_names(module):
        home = homes.setdefault(id(getattr(import_module(module), name)), module)
        (new if home == module else known).append((name, home))
    page = (
        f"{module}\n{'=' * len(module)}\n\n{text.replace('`', '``')}\n\n.. currentmodule:: {module}\n\n"
        ".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n" + "".join(f"   {name}\n" for name, _ in new)
    )
    if known:
        page += "\nHere too: " + ", ".join(f":doc:`{name} <generated/{home}.{name}>`" for name, home in known) + ".\n"
    return page


def command_page() -> str:
    """The help of every command, as the program prints it; Markdown."""
    from typer.testing import CliRunner

    from vcrf.cli.app import _COMMANDS, app
    from vcrf.cli.help import RARE

    runner = CliRunner()
    parts = [
        "# Commands and options",
        "What `vcrf COMMAND --help` prints, or `--help-all` where there are rare options. "
        "[The command line](command_line.md) has formats, JSON keys and exit codes.",
    ]
    for name in _COMMANDS:
        option = "--help-all" if name in RARE else "--help"
        text = runner.invoke(app, [name, option], prog_name="vcrf", env={"COLUMNS": "80"}).stdout
        parts.append(f"## vcrf {name}\n\n```text\n{text.strip()}\n```")
    return "\n\n".join(parts) + "\n"
