"""The entry point of ``cafe`` and of ``python -m cafe``.

The command line's imports take some tenths of a second. Ctrl-C during them must not print a
traceback, so the handler is installed before they begin. (While Python itself starts, before any
line of CAFe has run, Ctrl-C shows Python's own traceback.)
"""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Run the command line; Ctrl-C while it is imported prints one line and exits with 130."""
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if default:  # and not ignored, as after nohup
        signal.signal(signal.SIGINT, _stop)
    from cafe.cli import main as run

    try:
        if default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        _stop()


def _stop(*_: object) -> None:
    """End the process at once: an exception could be lost within an import."""
    try:
        os.write(2, b"Stopped.\n")
    finally:  # even if standard error is closed
        os._exit(130)


if __name__ == "__main__":
    main()
