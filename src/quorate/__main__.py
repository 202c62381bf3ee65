"""`python -m quorate`: the command `quorate` of this Python."""

from quorate.cli.main import main

main()
