"""The sdist and the wheel: what is in them, and that they work where nothing else is installed."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Files of the repository that only its own services read.
NOT_SHIPPED = (".ci/", ".github/", ".gitignore", ".pre-commit-config.yaml", ".readthedocs.yaml")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel, built from the files of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def tracked() -> set[str]:
    """The files of the repository; those of the folder where it is not a repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this tree is not a git repository, so its files are not listed")
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


@pytest.mark.slow
def test_sdist_contains_all_files_that_tests_read(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    missing = {name for name in tracked() - names if not name.startswith(NOT_SHIPPED)}
    assert not missing


@pytest.mark.slow
def test_wheel_contains_the_package_and_its_licences(built: Path) -> None:
    (archive,) = built.glob("*.whl")
    with zipfile.ZipFile(archive) as wheel:
        names = set(wheel.namelist())
    package = {name for name in tracked() if name.startswith("src/cafe/")}
    assert {name.removeprefix("src/") for name in package} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith("tests")]


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.whl")
    environment = tmp_path / "environment"
    venv.create(environment)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-compile"]
    install += ["--quiet", "--disable-pip-version-check"]
    install += ["-c", str(ROOT / "constraints.txt"), str(archive)]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode and "No matching distribution" in done.stderr + done.stdout:
        pytest.skip("the package registry cannot be reached, so nothing can be installed")
    assert not done.returncode, done.stderr

    def cafe(*arguments: str) -> str:
        command = [str(environment / "bin" / "cafe"), *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert not ran.returncode, ran.stderr
        return ran.stdout

    planned = cafe("plan", "--clients", "50", "--rate", "1", "--waste-price", "20",
                   "--broadcast-price", "100")  # fmt: skip
    assert "8.52" in planned
    scenario = (ROOT / "docs" / "examples" / "scenario.toml").read_text()
    (tmp_path / "scenario.toml").write_text(scenario)
    assert "accuracy" in cafe("simulate", "scenario.toml", "--rounds", "5")
