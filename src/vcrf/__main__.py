"""`python -m vcrf` is the command `vcrf`."""

from vcrf.cli import main

main()
