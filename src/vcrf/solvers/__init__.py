"""Solvers that return a certificate with the weights."""
