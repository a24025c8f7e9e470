"""Word classes: tables from words to classes, their files, and learning them from raw text."""

from vcrf.classes.files import as_classes, read_classes, read_lines, write_classes
from vcrf.classes.learning import LearntClasses, RoundRecord, learn_classes
from vcrf.classes.table import WordClasses

__all__ = [
    "LearntClasses",
    "RoundRecord",
    "WordClasses",
    "as_classes",
    "learn_classes",
    "read_classes",
    "read_lines",
    "write_classes",
]
