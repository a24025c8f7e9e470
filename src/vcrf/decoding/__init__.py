"""Decoding under constraints: which label sequences are allowed, the best of them, and their probabilities."""
