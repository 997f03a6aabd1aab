"""Controllers that choose deadline and quorum from what a run has seen."""

from cafe.control.self_tuning import SelfTuning

__all__ = ["SelfTuning"]
