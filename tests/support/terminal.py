"""What is printed, as text."""

from __future__ import annotations

from typing import Any

from rich.console import Console


def text_of(renderable: Any) -> str:
    console = Console(width=200, markup=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()
