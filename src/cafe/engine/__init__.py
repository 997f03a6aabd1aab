"""The simulator: rounds in virtual time, and gradients only for updates that are used."""

from cafe.engine.run import Run
from cafe.engine.simulate import run_rounds, simulate
from cafe.engine.stopping import StoppingRule

__all__ = ["Run", "StoppingRule", "run_rounds", "simulate"]
