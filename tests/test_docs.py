"""The documentation is correct: its code runs, its output is real, its lists are complete."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import click
import numpy as np
import pytest
import typer

import cafe
from cafe import cli
from cafe.federation_files import family_name
from cafe.latency import Latency, Various
from cafe.planner import explain, limits
from cafe.theory.expect import SCALARS
from cafe.wording import QUANTITIES
from tests.support.shown_output import appears, check_session

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
Cafe = Callable[[str], tuple[int, str]]


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def quantity_label(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cafe:
    """Call the command line; its exit code and all that it printed."""

    def called(command: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        capsys.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return called


# ---------------------------------------------------------------- code and its output


@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text())], ids=quantity_label
)
@pytest.mark.slow
def test_code_runs_and_prints_what_is_shown(
    page: Path, run: Cafe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "console":
            check_commands(code, run)
        elif ">>>" in code:
            check_session(code, names)
        else:
            exec(compile(code, str(page), "exec"), names)


def check_commands(code: str, run: Cafe) -> None:
    """Commands, each followed by what it prints; a line of three dots stands for any lines."""
    for part in re.split(r"^\$ ", code.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        assert command.startswith("cafe "), f"only cafe's own commands are run: {command}"
        status, printed = run(command)
        assert status == (2 if "Error:" in shown else 0), printed
        if shown.strip():
            assert appears(shown, printed), (
                f"{command}\nprints\n{printed}\nbut is shown with\n{shown}"
            )


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        ("a 1.000 b", True),
        ("a 1.0001\n b", True),
        ("a 1.01 b", False),
        ("a 1.0", False),
        ("...\nb", True),
        ("a\n...", True),
        ("a\n...\nb", True),
        ("...\n1.0\n...", True),
        ("...\na", False),
        ("...\nc\n...", False),
    ],
)
def test_shown_output_is_compared(shown: str, same: bool) -> None:
    assert appears(shown, "a 1.0 b") == same
    slowly = "Sweep: 34 of 36, 3.407/s, 94%, about 1 s left\na 1.0 b\n... 1,020 s elapsed\n"
    assert appears(shown, slowly) == same, "lines about progress do not count"


@pytest.mark.parametrize("example", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_every_example_is_used(example: Path) -> None:
    commands = "\n".join(
        code for page in PAGES for _, code in BLOCK.findall(page.read_text(encoding="utf-8"))
    )
    assert example.name in commands


# ---------------------------------------------------------------- lists that must be complete


def rows(page: str, section: str | None = None) -> Iterator[list[str]]:
    """The cells of the rows of the tables on a page, or in one of its sections."""
    content = text(page)
    if section:
        content = re.split(rf"^## {re.escape(section)}$", content, flags=re.MULTILINE)[1]
        content = re.split(r"^## ", content, flags=re.MULTILINE)[0]
    for line in content.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and not set(cells[0]) <= {"-"}:
            yield cells


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# As LaTeX numbers them, one counter for each sort; figure 8 has four parts.
STATEMENTS = [
    *(f"Assumption {i}," for i in range(1, 5)),
    "Definition 1,",
    *(f"Theorem {i}," for i in range(1, 4)),
    *(f"Corollary {i}," for i in range(1, 4)),
    *(f"Remark {i}," for i in range(1, 5)),
    *(f"Fig. {i}," for i in range(1, 8)),
    *(f"Fig. 8({part})," for part in "abcd"),
    *(f"Table {i}," for i in (1, 2)),
    *(f"({i}) " for i in range(1, 35)),
]
SYMBOLS = """
N k M T t λ X_k p n p_n q K ñ r R Geom(q) Geom(r) S_t 1{·} C_w E[C_w] C_b E[C_b] Δ_k E[Δ_k]
E[Δ_k]/T α_w α_b J(λ,T) J(x) x g(M) D_k l(w,d) F F_k w w_t w* ∇F_k ∇F̃_k ∇F̄_k g_t g̃_t
η_t β γ L μ σ² Γ ε₁ F* F_k* S̃ A B Q(·)
"""  # noqa: RUF001


@pytest.mark.parametrize("label", STATEMENTS)
def test_paper_statement_is_mapped(label: str) -> None:
    found = [cells for cells in rows("paper.md") if f"{cells[0]} ".startswith(label)]
    assert len(found) == 1, f"{label} has {len(found)} rows"
    assert all(found[0]), "what gives it, and whether it holds"


def test_paper_symbols_are_mapped() -> None:
    mapped = {symbol: cells for cells in rows("paper.md", "Symbols") for symbol in quoted(cells[0])}
    assert not set(SYMBOLS.split()) - mapped.keys()
    assert all(all(cells) for cells in mapped.values())


def test_surface_table_is_complete() -> None:
    listed = [quoted(cells[0])[0] for cells in rows("reference/cafe.md") if quoted(cells[0])]
    assert sorted(listed) == sorted(f"cafe.{name}" for name in cafe.__all__)


@pytest.mark.parametrize(
    "module",
    [
        "data",
        "federation_files",
        "fitting",
        "latency",
        "learn",
        "live",
        "planner",
        "policies",
        "presence",
        "results",
        "rounds",
        "sweep",
        "testing",
        "theory",
    ],
)
def test_reference_has_every_name(module: str) -> None:
    page = text(f"reference/{module}.md")
    for name in import_module(f"cafe.{module}").__all__:
        found = re.search(rf"^\.\. auto\w+:: cafe\.{module}\.{name}$", page, re.MULTILINE)
        assert found or f"`{name}`" in page, name


def commands(group: click.Group, before: str = "") -> dict[str, click.Command]:
    """Every verb by its name; those of a group have the group's name before theirs."""
    found: dict[str, click.Command] = {}
    for name in group.list_commands(click.Context(group)):
        verb = group.commands[name]
        inside = hasattr(verb, "commands")
        found |= commands(verb, f"{name} ") if inside else {f"{before}{name}": verb}  # type: ignore[arg-type]
    return found


COMMANDS = commands(typer.main.get_command(cli.app))  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", COMMANDS)
def test_options_are_listed(verb: str) -> None:
    listed = {
        quoted(option)[0]: (default, meaning)
        for option, _, default, meaning in rows("reference/cli.md", f"cafe {verb}")
        if quoted(option)
    }
    real = {
        p.opts[0] if isinstance(p, click.Option) else f"{p.name}".upper(): (
            "needed" if p.required else default(p),
            getattr(p, "help", None),
        )
        for p in COMMANDS[verb].params
    }
    assert listed == real


def default(option: click.Parameter) -> str:
    return "" if option.default is None or option.default is False else f"`{option.default}`"


def test_every_verb_has_a_section() -> None:
    assert re.findall(r"^## cafe ([\w ]+)$", text("reference/cli.md"), re.MULTILINE) == [*COMMANDS]


def test_every_message_of_the_server_is_explained() -> None:
    page = text("operating.md")
    source = (ROOT / "src" / "cafe" / "live" / "server.py").read_text()
    said = re.findall(r'say\(\s*f?"([^{"]+)', source)
    assert len(said) > 10
    for sentence in said:
        assert f"`{sentence.split(':')[0].strip()}" in page, sentence


def test_expect_json_fields() -> None:
    listed = {
        quoted(name)[0]: unit
        for name, unit, _ in rows("reference/json.md", "cafe expect")
        if quoted(name)
    }
    assert tuple(listed) == SCALARS
    assert {name: listed[name] for name in QUANTITIES} == {
        name: unit for name, (_, unit, _) in QUANTITIES.items()
    }


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("plan", "--clients 9 --rate 1 --waste-price 1 --broadcast-price 1"),
        ("frontier", "--clients 9 --rate 1"),
        ("fit", f"'{EXAMPLES / 'responses.csv'}' --per-client"),
    ],
)
def test_json_fields(verb: str, arguments: str, run: Cafe) -> None:
    _, printed = run(f"cafe {verb} {arguments} --json")
    made = json.loads(printed)
    listed = [
        quoted(cells[0])[0]
        for cells in rows("reference/json.md", f"cafe {verb}")
        if quoted(cells[0])
    ]
    assert sorted(listed) == sorted(made[0] if isinstance(made, list) else made)


def test_families_are_listed() -> None:
    families = (getattr(cafe.latency, name) for name in cafe.latency.__all__)
    real = {
        family_name(family): [
            f.name for f in dataclasses.fields(family) if f.init and f.name != "kinds"
        ]
        for family in families
        if family not in (Latency, Various)
    }
    listed = {
        quoted(family)[0]: quoted(parameters)
        for family, parameters, _ in rows("reference/files.md", "Families")
        if quoted(family)
    }
    assert listed == real


def test_columns_of_a_run_are_listed(run: Cafe, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    run(f"cafe simulate '{EXAMPLES / 'scenario.toml'}' --rounds 2 --output '{tmp_path}'")
    rounds, clients = (
        parquet.read_schema(tmp_path / "mcu-seed-0" / f"{name}.parquet").names
        for name in ("rounds", "clients")
    )
    with np.load(tmp_path / "mcu-seed-0" / "clients.npz") as arrays:
        clients += [name for name in arrays if name not in clients]
    listed = [
        n for cells in rows("reference/files.md", "Columns of a run") for n in quoted(cells[0])
    ]
    assert listed == rounds + clients


def test_the_example_compares_with_the_papers_awu() -> None:
    awu = cafe.scenario.load_scenario(EXAMPLES / "scenario.toml").policy("awu")
    assert awu == cafe.policies.awu(deadline=0.5)


def test_limits_are_listed() -> None:
    listed = re.search(r"Limits can be set on: (.*?)\.\n", text("how-to/limits-and-goals.md"), re.S)
    assert listed
    assert sorted(quoted(listed[1])) == sorted(limits.WITH_QUORUM)


def test_every_warning_has_a_section() -> None:
    page = text("how-to/read-the-warnings.md")
    sections = re.findall(r"^## ", page, re.MULTILINE)
    of_the_fit = 4  # beyond the observations, or kept within; offline or slow; a rough fit
    of_the_plan = inspect.getsource(explain.plan_warnings).count("found.append(")
    assert len(sections) == of_the_plan + of_the_fit
    for words in (
        "beyond the observations", "told from slow ones", "never reported", "only 12 reports",
        "No family fits well",
    ):  # fmt: skip
        assert words in page


def test_design_picture_shows_every_package() -> None:
    picture = (DOCS / "images" / "design.svg").read_text(encoding="utf-8")
    source = ROOT / "src" / "cafe"
    parts = {path.name for path in source.iterdir() if (path / "__init__.py").exists()}
    parts |= {path.stem for path in source.glob("[a-z]*.py")}
    missing = {part for part in parts if f">{part}</text>" not in picture}
    assert not missing, "docs/images/design.svg does not show them"
    for path in re.findall(r"[a-z_]+(?:/[a-z_]+)?\.py", picture):
        assert (source / path).exists(), f"docs/images/design.svg names {path}"


def test_paths_in_the_table_of_concepts_exist() -> None:
    page = text("design.md")
    rows = page.partition("## Where do I find")[2].partition("\n##")[0]
    places = [row.split("|")[2] for row in rows.splitlines() if row.startswith("| ")][2:]
    assert len(places) >= 20
    for place in places:
        paths = [path for path in re.findall(r"`([^`]+)`", place) if "/" in path or ".py" in path]
        assert paths, place
        for path in paths:
            assert (ROOT / "src" / "cafe" / path).exists(), f"docs/design.md names {path}"
