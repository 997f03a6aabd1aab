"""Learners: how a model is trained, behind one protocol."""
