"""Values as JSON has them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any


def to_json(value: Any) -> str:
    """JSON text. It has no infinity: numbers that are not finite are null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)  # most values are plain already
    except (TypeError, ValueError):
        return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Mappings, lists, numbers and text; dataclasses and numbers of numpy become such."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "item"):  # a number of numpy
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
