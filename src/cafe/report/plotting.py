"""What all plots share: figures, colours and styles, and how they are saved.

matplotlib is imported only when a figure is made.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cafe.errors import FileError, InputError
from cafe.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GOOD, WARM, COOL, GREY = "#222222", "#1a7f4b", "#c2571a", "#2b6cb0", "#999999"

# Okabe and Ito's colours, which colour-blind readers can tell apart; lines differ in dashes too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#222222")
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1.2)), (0, (6, 1, 1, 1, 1, 1)))
MARKERS = "osD^v<>"

FORMATS = ("eps", "jpeg", "jpg", "pdf", "png", "svg")
DATELESS: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def figure(width: float = 7.0, height: float = 4.2) -> Figure:
    """An empty figure of this size in inches; it needs no window system."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "Pictures need matplotlib, which is not installed. Run: pip install matplotlib."
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def line_style(index: int) -> dict[str, Any]:
    """The colour and dashes of the policy with this index, the same in every plot."""
    return {"color": COLOURS[index % len(COLOURS)], "ls": DASHES[index % len(DASHES)]}


def tidy(axes: Axes) -> None:
    """Remove the frame, add a faint grid, and a legend if anything has a label."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)


def check_format(path: str | Path) -> str:
    """The picture format that a file name ends in; an error if it is not one of ``FORMATS``."""
    figure()  # an error if matplotlib is not installed
    ending = Path(path).suffix.lstrip(".").lower()
    if ending not in FORMATS:
        raise FileError(
            path,
            f"a picture's name must end in one of: {', '.join(f'.{name}' for name in FORMATS)}. "
            f"Got '{Path(path).name}': choose another name.",
        )
    return ending


def save(made: Figure, path: str | Path) -> None:
    """Write a figure to a file, in the format that the file name ends in."""
    ending = check_format(path)
    with replacing(path) as new:
        write_figure(made, new, ending)


def write_figure(made: Figure, target: str | Path | IO[str] | IO[bytes], ending: str) -> None:
    """Write a figure so that equal figures give equal bytes: without dates or random ids."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "cafe"}):
        made.savefig(target, format=ending, dpi=144, metadata=DATELESS.get(ending))
