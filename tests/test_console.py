"""What verbs print, and which output files are errors before any work is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cafe import console
from cafe.errors import FileError


def test_json_has_null_for_non_finite_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"a": [1.5, float("nan")], "b": float("inf")})
    assert json.loads(capsys.readouterr().out) == {"a": [1.5, None], "b": None}


def test_sentences_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    console.say_written(Path("plan.svg"), None)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "Wrote plan.svg\n")


def test_files_in_missing_folders_are_errors(tmp_path: Path) -> None:
    console.check_folder(tmp_path / "plan.svg")
    with pytest.raises(FileError, match="there is no folder"):
        console.check_folder(tmp_path / "no" / "plan.svg")
    with pytest.raises(FileError, match=r"must end in \.html or \.htm"):
        console.check_page(tmp_path / "page.pdf")
