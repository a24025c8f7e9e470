"""vcrf: Voted Conditional Random Fields, structured prediction with guarantees."""

__version__ = "0.1.0"
