"""Families of features: what is read around a position, and the tag patterns it is joined with."""

from vcrf.families.explicit import NamedFeature, explicit_families, read_attributes
from vcrf.families.family import Family, Source, paper_complexities
from vcrf.families.presets import (
    class_families,
    component_families,
    component_pair_families,
    default_families,
    paper_families,
    transition_families,
)
from vcrf.families.templates import BIAS, END, START, Occurrences, Template
from vcrf.families.text import Text, intern_sentences

__all__ = [
    "BIAS",
    "END",
    "START",
    "Family",
    "NamedFeature",
    "Occurrences",
    "Source",
    "Template",
    "Text",
    "class_families",
    "component_families",
    "component_pair_families",
    "default_families",
    "explicit_families",
    "intern_sentences",
    "paper_complexities",
    "paper_families",
    "read_attributes",
    "transition_families",
]
