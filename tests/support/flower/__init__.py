"""Helpers for tests on real Flower processes."""
