"""What is needed to tag, the facts of its training, and the file that holds both."""

from vcrf.model.model import FamilyFacts, Feature, Model

__all__ = ["FamilyFacts", "Feature", "Model"]
