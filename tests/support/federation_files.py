"""Load federations from text, and the messages about files that cannot be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cafe.errors import FileError
from cafe.federation import Federation
from cafe.federation_files import (
    load_federation,
)


def loaded(folder: Path, text: str | bytes, name: str) -> Federation:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_federation(path)


def refused(folder: Path, text: str | bytes, name: str) -> str:
    """The message about a file, which must begin with the file and read as sentences."""
    with pytest.raises(FileError) as caught:
        loaded(folder, text, name)
    message = str(caught.value)
    assert message.startswith(str(folder / name))
    assert message.endswith((".", "?"))
    assert not re.search(r"pydantic|validation|\bloc\b|Traceback|None", message)
    return message.removeprefix(str(folder / name))
