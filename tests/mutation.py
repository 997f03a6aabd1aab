"""Mutation testing: change the source in small ways and see whether the tests notice.

``make mutation`` mutates the theory, the books and the policies, one operator or number at a time,
and runs the tests of that part. A mutant that no test notices survives, and is printed as a diff.
All mutants take many hours, so a random sample is tested by default.

    python -m tests.mutation --sample 40 --seed 1 --only 'theory/*'
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
TIMEOUT = 600.0  # seconds for the tests of one mutant; a mutant that makes them hang is detected

# The source files to mutate, and the tests that must notice a mutant of them.
PARTS = {
    "theory/*.py": "tests/theory",
    "engine/books.py": "tests/engine tests/contracts/test_policies.py",
    "engine/closing_round.py": "tests/engine tests/contracts/test_policies.py",
    "engine/kept_reports.py": "tests/engine tests/contracts/test_policies.py",
    "policies/*.py": "tests/policies tests/contracts/test_policies.py",
}


def copy_of_the_tree(folder: Path) -> Path:
    """A copy of all tracked files: a mutation that is interrupted must not harm the original."""
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in names.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def commands_for(module: str) -> list[str]:
    """Commands that run the module's own tests, then the fast and the slow tests of its part.

    Most mutants fail a test of the first command. Each command stops at the first failure.
    """
    tests = next(tests for pattern, tests in PARTS.items() if fnmatch(module, pattern))
    own = Path("tests", module).with_name(f"test_{Path(module).name}")
    steps = [("not slow", str(own))] if (ROOT / own).is_file() else []
    steps += [("not slow", tests), ("slow", tests)]
    pytest = f"{shlex.quote(sys.executable)} -m pytest -x -q -p no:cacheprovider"
    return [f"{pytest} -m {shlex.quote(marked)} {files}" for marked, files in steps]


def modules(only: str) -> list[str]:
    """The modules of all parts that match a pattern, relative to the package."""
    source = ROOT / "src" / "cafe"
    found = {path for pattern in PARTS for path in source.glob(pattern)}
    names = sorted(str(path.relative_to(source)) for path in found if path.name != "__init__.py")
    return [name for name in names if fnmatch(name, only)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutation testing of theory, books and policies.")
    parser.add_argument("--only", default="*", help="modules that match this pattern")
    parser.add_argument("--sample", type=int, default=40, help="mutants to test; 0: all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    options = parser.parse_args()

    from cosmic_ray.commands import init
    from cosmic_ray.mutating import mutate_and_test
    from cosmic_ray.work_db import WorkDB

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(copy_of_the_tree(Path(folder)))
        os.environ["PYTHONPATH"] = str(Path(folder) / "src")
        database = WorkDB(f"{folder}/mutants.sqlite", WorkDB.Mode.create)
        init([Path("src/cafe") / name for name in modules(options.only)], database, {})
        every = (mutant for item in database.work_items for mutant in item.mutations)
        # Nearly every | is in an annotation, which has no effect at run time.
        mutants = [mutant for mutant in every if "_BitOr_" not in mutant.operator_name]
        chosen = mutants
        if options.sample and options.sample < len(mutants):
            chosen = random.Random(options.seed).sample(mutants, options.sample)
        print(f"{len(chosen)} of {len(mutants)} mutants are tested.", flush=True)
        outcomes: Counter[str] = Counter()
        for number, mutant in enumerate(chosen, 1):
            module = str(mutant.module_path.relative_to("src/cafe"))
            for command in commands_for(module):
                result = mutate_and_test([mutant], command, TIMEOUT)
                if result.is_killed:
                    break
            outcome = "killed" if result.is_killed else "survived"
            outcomes[outcome] += 1
            where = f"{module}, line {mutant.start_pos[0]}"
            print(f"{number}/{len(chosen)} {outcome}: {where}, {mutant.operator_name}", flush=True)
            if outcome == "survived":
                print(result.diff, flush=True)
    killed = outcomes["killed"]
    print(f"{killed} of {len(chosen)} mutants were killed ({killed / len(chosen):.0%}).")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
