"""Surrogates: convex upper bounds of the task loss, with value, gradient and scan."""
