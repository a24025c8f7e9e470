"""How the gallery finds pictures: examples write them to the path that they are given, or beside themselves."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst

NAME = "picture.png"


def picture_argument(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:  # noqa: ARG001
    """The argument of each example: where to write its picture."""
    return [NAME]


def written_pictures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:  # noqa: ARG001
    """Take the pictures that a block wrote."""
    names = []
    for picture in sorted(Path(block_vars["src_file"]).parent.glob("picture*.*")):
        target = Path(next(block_vars["image_path_iterator"])).with_suffix(picture.suffix)
        shutil.move(picture, target)
        names.append(str(target))
    return figure_rst(names, gallery_conf["src_dir"])
