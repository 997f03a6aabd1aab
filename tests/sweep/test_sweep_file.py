"""The file of a sweep: what it means, and what is wrong with it."""

from __future__ import annotations

import pytest

from cafe.errors import FileError, InputError
from cafe.sweep import load_sweep
from tests.sweep.conftest import SCENARIO, SWEEP, SweepFolder

RANGE = ("policy.deadline = [0.5, 1]", "policy.deadline = {low = 0.1, high = 2}")


def test_a_sweep_is_read(workspace: SweepFolder) -> None:
    sweep = workspace.sweep()
    assert sweep.labels == ("mcu", "slow")
    assert sweep.seeds == (0, 7)
    assert (sweep.measure.name, sweep.measure.direction) == ("mean_age", "minimise")
    assert sweep.sampler == "grid"
    assert sweep.size == 2 * 2 * 2 * 2
    assert sweep.name == "sweep"


def test_the_scenario_may_be_in_the_same_file(workspace: SweepFolder) -> None:
    inside = workspace.sweep(('scenario = "small.toml"\n', ""), text=SCENARIO + SWEEP)
    assert inside.settings() == workspace.sweep().settings()


def test_seeds_and_policies_are_those_of_the_scenario_unless_given(workspace: SweepFolder) -> None:
    assert workspace.sweep(("seeds = [0, 7]\n", "")).seeds == (0,)
    assert workspace.sweep(("seeds = [0, 7]", "seeds = 3")).seeds == (0, 1, 2)
    assert workspace.sweep(("seeds", 'policies = ["agu", "slow"]\nseeds')).labels == ("agu", "slow")


def test_ranges_are_sampled(workspace: SweepFolder) -> None:
    random = workspace.sweep(RANGE, ("seeds", "samples = 5\nseeds"))
    assert (random.sampler, random.size) == ("random", 5 * 2 * 2)
    path = workspace.write(RANGE, ("seeds", "samples = 5\nseeds"))
    optuna = load_sweep(path, sampler="optuna")
    assert (optuna.sampler, optuna.size) == ("optuna", 5 * 2), "Optuna chooses the policy too"


MISTAKES = {
    "unknown key": (("minimise", "minimize"), "sweep.minimize is not known. Did you mean 'minimis"),
    "unknown table": (("[sweep.values]", "[sweeps.values]"), "Did you mean 'sweep'"),
    "no measure": (('minimise = "mean_age"\n', ""), "Got neither: give one"),
    "two measures": (("seeds", 'maximise = "updates"\nseeds'), "Got both"),
    "unknown measure": (("mean_age", "mean_ages"), "Got 'mean_ages'. Did you mean 'mean_age'"),
    "no accuracy": (("mean_age", "time_to_accuracy"), "needs the accuracy to reach. Add it"),
    "wrong accuracy": (("seeds", "accuracy = 80\nseeds"), "at most 1. Got 80"),
    "no scenario": (('scenario = "small.toml"\n', ""), "the sweep needs a scenario"),
    "missing scenario": (("small.toml", "none.toml"), "none.toml: the file cannot be read"),
    "two scenarios": (("[sweep]", "[run]\n[sweep]"), r"Got sweep.scenario and the table \[run\]"),
    "no values": (("policy.quorum = [3, 5]\npolicy.deadline = [0.5, 1]", ""), "use cafe compare"),
    "unknown policy": (("seeds", 'policies = ["mcuu"]\nseeds'), "Did you mean 'mcu'"),
    "policy twice": (("seeds", 'policies = ["mcu", "mcu"]\nseeds'), "different policies"),
    "policies as text": (("seeds", 'policies = "mcu"\nseeds'), r'policies = \["mcu", "awu"\]'),
    "no seeds": (("[0, 7]", "0"), "seeds must be a whole number from 1 up"),
    "seed twice": (("[0, 7]", "[0, 0]"), "different numbers"),
    "grid of ranges": (("seeds", 'sampler = "grid"\nseeds'), "Got a range for policy.deadline"),
    "no samples": (("seeds", "seeds"), "samples is missing"),
    "unknown sampler": (("seeds", 'sampler = "tpe"\nseeds'), 'Got .tpe.. Known: grid'),
    "wrong table": (("policy.quorum", "polcy.quorum"), "Got 'polcy'. Did you mean 'policy'"),
    "table only": (("policy.quorum = [3, 5]", "run = [1]"), r"must name a key of \[run\]"),
    "seeds as a key": (("policy.quorum = [3, 5]", "run.seeds = [[0], [1]]"), "as sweep.seeds"),
    "key in a number": (("policy.quorum = ", "policy.quorum.least = "), "is not a table"),
    "no such group": (("policy.quorum", "federation.rate.x"), "is not a table"),
    "too many": (("[0, 7]", "1000000"), "at most 1,000,000 cells. Got 8,000,000"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(workspace: SweepFolder, mistake: str) -> None:
    change, message = MISTAKES[mistake]
    ranges = [RANGE] if mistake in ("grid of ranges", "no samples") else []
    with pytest.raises(InputError, match=message):
        workspace.sweep(change, *ranges)


def test_samples_of_a_grid_are_refused(workspace: SweepFolder) -> None:
    with pytest.raises(FileError, match=r"a grid runs all values. Got samples = 5: remove it"):
        workspace.sweep(("seeds", "samples = 5\nseeds"))


def test_the_sampler_may_be_chosen_in_place_of_the_files(workspace: SweepFolder) -> None:
    path = workspace.write(("seeds", 'sampler = "random"\nsamples = 5\nseeds'))
    assert (load_sweep(path).size, load_sweep(path, sampler="grid").size) == (20, 16)


def test_quotes_around_keys_do_not_matter(workspace: SweepFolder) -> None:
    quoted = workspace.sweep(
        ("policy.quorum", '"policy.quorum"'), RANGE, ("seeds", "samples = 5\nseeds")
    )
    plain = workspace.sweep(RANGE, ("seeds", "samples = 5\nseeds"))
    assert quoted.settings() == plain.settings()


def test_groups_are_numbered(workspace: SweepFolder) -> None:
    groups = "[[federation.group]]\nclients = 5\nrate = 1.0\n" * 2
    scenario = SCENARIO.replace("[federation]\nclients = 20\nrate = 1.0\n", groups)
    (workspace.folder / "small.toml").write_text(scenario)
    found = workspace.sweep(("policy.quorum = [3, 5]", "federation.group.1.clients = [5, 9]"))
    assert found.axes[0].key == "federation.group.1.clients"
    for step in ("2", "one"):
        with pytest.raises(FileError, match=f"group in place of '{step}': the scenario has 2"):
            workspace.sweep(("policy.quorum = [3, 5]", f"federation.group.{step}.clients = [5, 9]"))
