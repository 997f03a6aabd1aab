"""Small scenarios as text, and the messages about those that cannot be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cafe.errors import FileError
from cafe.scenario import Scenario, load_scenario

FEDERATION = "[federation]\nclients = 20\nrate = 1.0\n"


POLICY = '[policy]\nname = "mcu"\nquorum = 3\ndeadline = 0.5\n'


RUN = "[run]\nrounds = 10\n"


TASK = '[task]\ndataset = "digits"\npartition = "iid"\n'


LEARNER = '[learner]\nname = "softmax"\n'


LEDGER = FEDERATION + POLICY + RUN


WHOLE = LEDGER + TASK + LEARNER


def loaded(folder: Path, text: str) -> Scenario:
    path = folder / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    return load_scenario(path)


def refused(folder: Path, text: str) -> str:
    """The message about a scenario, which must begin with the file and read as sentences."""
    with pytest.raises(FileError) as caught:
        loaded(folder, text).task(0)
    message = str(caught.value)
    assert message.startswith(str(folder / "scenario.toml"))
    assert message.endswith((".", "?"))
    assert not re.search(r"pydantic|validation|\bloc\b|Traceback", message)
    return message.removeprefix(f"{folder / 'scenario.toml'}: ")
