"""Attacks on vcrf, drawn at random: `python -m tests.campaign`.

A part of the campaign is a file here with a `Part`. Each case follows from the seed and its number alone, so that one
line reproduces it. A case returns the name of what happened (a column of the table); whatever it raises is a finding.
"""
