"""`python -m weakspot` is the command `weakspot`."""

from weakspot.cli.main import main

main()
