"""How good a tagger is: errors with intervals, comparison of two taggers, entities.

All functions take `y_true` and `y_pred`, lists of lists of labels.
"""

from vcrf.metrics.comparison import Comparison, compare
from vcrf.metrics.entities import (
    Entity,
    EntityIntervals,
    EntityScore,
    EntityScores,
    entities,
    entity_f1_interval,
    entity_intervals,
    entity_scores,
)
from vcrf.metrics.errors import (
    Confusion,
    ErrorRate,
    Evaluation,
    confusions,
    evaluate,
    sentence_error,
    token_error,
    unknown_word_error,
)
from vcrf.metrics.morphology import Morphology, Share, morphology

__all__ = [
    "Comparison",
    "Confusion",
    "Entity",
    "EntityIntervals",
    "EntityScore",
    "EntityScores",
    "ErrorRate",
    "Evaluation",
    "Morphology",
    "Share",
    "compare",
    "confusions",
    "entities",
    "entity_f1_interval",
    "entity_intervals",
    "entity_scores",
    "evaluate",
    "morphology",
    "sentence_error",
    "token_error",
    "unknown_word_error",
]
