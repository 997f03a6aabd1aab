"""Install Flower apps completely or not at all.

Flower copies an app's files into their final folder one by one, and treats any existing folder as a
complete app. If a process is killed while it copies, no later run of this app can start. Here the
files are copied into another folder first, which is then renamed; an incomplete folder is replaced.

This module replaces ``validate_and_install`` in ``flwr.cli.install``, which is not public. It was
tried with flwr 1.41.0 only. tests/flower/test_app_install.py fails if a release of Flower moves it.
"""

from __future__ import annotations

import functools
import importlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any


def install_completely() -> None:
    """Have Flower, in this process, install apps completely or not at all."""
    module: Any = importlib.import_module("flwr.cli.install")
    copy = module.validate_and_install

    @functools.wraps(copy)
    def validate_and_install(
        project_dir: Path,
        fab_hash: str,
        fab_name: str | None,
        install_dir: Path | None,
        skip_prompt: bool = False,
    ) -> Path:
        home = install_dir.expanduser() if install_dir else module.get_flwr_home()
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=".installing-") as draft:
            copied = copy(project_dir, fab_hash, fab_name, Path(draft), skip_prompt)
            app: Path = home / copied.relative_to(draft)
            if not _is_complete(app, copied):
                shutil.rmtree(app, ignore_errors=True)
                app.parent.mkdir(parents=True, exist_ok=True)
                with suppress(OSError):  # another process was quicker
                    os.rename(copied, app)
        return app

    module.validate_and_install = validate_and_install


def _is_complete(app: Path, copied: Path) -> bool:
    """Whether a folder has all files of an app."""
    files = (path.relative_to(copied) for path in copied.rglob("*"))
    return app.is_dir() and all((app / file).exists() for file in files)
