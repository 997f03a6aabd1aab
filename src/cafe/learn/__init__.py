"""Learners: how a model is trained, behind one protocol."""

from cafe.learn.base import Learner, Score
from cafe.learn.local_steps import LocalSteps

__all__ = ["Learner", "LocalSteps", "Score"]
