"""Orders are sent through the Grid; arrays that several orders share are sent once."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import RecordDict

from cafe.flower import messages
from tests.support.flower.orders import FROZEN, OFFSET, make_order, send
from tests.support.flower.reports import send_through

pytestmark = pytest.mark.usefixtures("identity")


def test_vectors_survive_packing() -> None:
    message = send(make_order(0, offset=OFFSET, frozen=FROZEN))[0]
    content: RecordDict = send_through(message.content)
    assert set(content) == {"model", "order", "offset", "frozen"}
    asked, _ = messages.read_order(content.config_records["order"])
    assert asked == make_order(0)
    found = messages.read_vectors(content)
    for name, expected in (("offset", OFFSET), ("frozen", FROZEN)):
        np.testing.assert_array_equal(found[name]["w"], expected["w"])
        assert found[name]["w"].dtype == expected["w"].dtype


def test_order_without_vectors_has_no_vector_records() -> None:
    message = send(make_order(0))[0]
    assert set(message.content) == {"model", "order"}
    assert messages.read_vectors(message.content) == {}


def test_shared_vectors_are_one_record() -> None:
    own = {"w": OFFSET["w"] + 1}
    orders = (
        make_order(0, offset=OFFSET),
        make_order(1, offset=OFFSET),
        make_order(2, offset=own),
    )
    names = [m.content["offset"].object_id for m in send(*orders)]
    assert names[0] == names[1] != names[2]
    again = [m.content["offset"].object_id for m in send(*orders)]
    assert not set(names) & set(again)  # no client can predict them
