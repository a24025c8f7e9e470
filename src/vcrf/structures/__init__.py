"""Structures: what is summed over, maximised over and scanned, at given weights; here chains of labels.

A structure compiles features to a `FeaturePlan`, sums over all outputs (`Sums`), finds best ones, scans all candidates
and has Hessians. It keeps nothing between two calls but threads and spare arrays; what it finds is a value.
"""
