"""Messages between server and clients."""

from __future__ import annotations

from cafe.live.wire import Order


def test_an_order_without_an_invitation_is_named_by_its_round() -> None:
    order = Order("a", 0, round=4, version=2, seed=1)
    assert order.invitation == 4
    assert Order("a", 0, round=4, version=2, seed=1, invitation=9).invitation == 9


def test_arrays_of_an_order_are_not_compared() -> None:
    """They may be large, and NumPy has no single answer to whether they are equal."""
    order = Order("a", 0, round=4, version=2, seed=1)
    assert order == Order("a", 0, round=4, version=2, seed=1, offset={}, frozen={})
