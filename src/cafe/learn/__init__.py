"""Learners: how a model is trained, behind one protocol."""

from cafe.learn.base import Learner, Score, Walks

__all__ = ["Learner", "Score", "Walks"]
