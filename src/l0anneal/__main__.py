"""``python -m l0anneal`` is the command line."""

from l0anneal.cli import main

main()
