"""``python -m cafe`` is ``cafe``."""

from cafe.cli import main

main()
