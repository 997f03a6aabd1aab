"""A ClientApp carries out its orders."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import Context, RecordDict

from cafe.flower import messages
from cafe.flower.client_app import client, make_reply
from cafe.live.client_work import Job
from cafe.live.model_layout import Arrays
from tests.support.flower.orders import FROZEN, OFFSET, make_order, send

pytestmark = pytest.mark.usefixtures("identity")


def test_a_client_app_trains_with_vectors() -> None:
    """A full step minus the pull is 1 - offset; frozen parameters do not change."""
    seen: list[Job] = []

    def train(model: Arrays, job: Job) -> Arrays:
        seen.append(job)
        return {**model, "w": model["w"] + 1 - job.pull("w", model["w"])}

    message = send(make_order(0, offset=OFFSET, frozen=FROZEN))[0]
    context = Context(7, 3, {}, RecordDict(), {})
    answer = client(train)(message, context)
    report = messages.read_report(answer.content, 10**6)
    assert report is not None
    expected = np.where(FROZEN["w"], 0, 1 - OFFSET["w"])
    np.testing.assert_allclose(report.update["w"], expected, atol=1e-6)
    np.testing.assert_array_equal(seen[0].frozen["w"], FROZEN["w"])


def test_reply_has_a_timestamp_of_the_servers_clock() -> None:
    message = send(make_order(0, seconds=9.0))[0]
    vars(message.metadata)["_created_at"] = 1000.0  # a clock that is years behind
    reply = make_reply(message, RecordDict(), time.monotonic() - 2.0)
    passed = reply.metadata.created_at - 1000.0
    assert passed >= 2.0
    assert reply.metadata.ttl == pytest.approx(message.metadata.ttl - passed)
    late = make_reply(message, RecordDict(), time.monotonic() - 1000.0)
    assert late.metadata.ttl > 0
