"""The demo: from a log of response times to a plan, and what the plan saves."""

from cafe.demo.demo import run_demo

__all__ = ["run_demo"]
