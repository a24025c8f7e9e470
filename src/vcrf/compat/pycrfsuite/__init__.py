"""The interface of python-crfsuite: `import vcrf.compat.pycrfsuite as pycrfsuite`. Files are CRFsuite's own."""

from __future__ import annotations

from vcrf.compat.pycrfsuite.dumps import CRFsuiteDumpParser, ParsedDump
from vcrf.compat.pycrfsuite.items import ItemSequence
from vcrf.compat.pycrfsuite.logs import LabelScore, TrainLogParser, training_log
from vcrf.compat.pycrfsuite.tagger import Tagger
from vcrf.compat.pycrfsuite.trainer import BaseTrainer, CRFSuiteError, Trainer

# The version of CRFsuite whose files are read and written.
CRFSUITE_VERSION = "0.12.2"

__all__ = [
    "CRFSUITE_VERSION",
    "BaseTrainer",
    "CRFSuiteError",
    "CRFsuiteDumpParser",
    "ItemSequence",
    "LabelScore",
    "ParsedDump",
    "Tagger",
    "TrainLogParser",
    "Trainer",
    "training_log",
]
