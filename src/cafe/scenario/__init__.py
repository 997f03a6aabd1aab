"""Scenarios: TOML files that describe a whole run.

A scenario is a TOML file with a federation (see :mod:`cafe.federation_files`), the policy of the
server (``[policy]``), the end of the run (``[run]``) and optionally what is learned (``[task]`` and
``[learner]``). The keys of these tables are the parameters of the functions and classes that they
describe.
"""

from __future__ import annotations

from cafe.scenario.scenario import Scenario, load_scenario, scenario_from_text

__all__ = ["Scenario", "load_scenario", "scenario_from_text"]
