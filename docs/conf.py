"""How Sphinx builds the site. `tools/build_docs.py` copies the pages, adds the generated ones, and calls Sphinx."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = next(folder for folder in HERE.parents if (folder / "pyproject.toml").exists())
sys.path.insert(0, str(ROOT / "tools"))

from docstrings import as_rst  # noqa: E402

import vcrf  # noqa: E402

project = "vcrf"
author = "The vcrf authors"
copyright = author  # noqa: A001
release = vcrf.__version__
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax",
    "sphinx-mathjax-offline", "sphinx_gallery.gen_gallery", "sphinx_design", "sphinx_copybutton",
]  # fmt: skip
exclude_patterns = ["auto_examples/*.ipynb", "auto_examples/*.py", "auto_examples/*.md5", "sg_execution_times.rst"]
templates_path = ["_templates"]
default_role = "literal"
highlight_language = "none"  # blocks without a language are formulas and commands
nitpicky = False

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4

autosummary_generate = True
toc_object_entries_show_parents = "hide"  # the page's own name before each method is too wide for its table of contents
autodoc_typehints = "none"  # the docstrings have them in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"vcrf {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": [], "installation": []}

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples")],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__",
    "download_all_examples": False,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "plot_gallery": True,
    "image_scrapers": ("gallery.written_pictures",),
    "reset_argv": "gallery.picture_argument",
    "reset_modules": (),
}
suppress_warnings = ["config.cache"]  # a list of functions in a configuration cannot be pickled
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")


def setup(app: Any) -> None:
    """Docstrings of ours are plain text with formulas: what reStructuredText would take for markup is protected."""
    app.connect("autodoc-process-docstring", as_rst, priority=100)
