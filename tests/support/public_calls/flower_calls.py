"""Calls of the functions for Flower apps; none if Flower is not installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from tests.support.public_calls.samples import CALLBACK, entry, given, policy
from tests.support.virtual_runs import start
from tests.support.wrong_calls import FLAG, NOT_NEGATIVE, NOTHING, POSITIVE, TEXT, Entry, maybe


def _entries() -> list[Entry]:
    from cafe import flower
    from tests.support.flower.fake_grid import FakeGrid

    def train(model: Any, job: Any) -> Any:
        return model

    return [
        entry(flower.client, {"train": NOTHING, "evaluate": CALLBACK}, given(train=train)),
        entry(
            flower.server,
            {"policy": NOTHING, "model": NOTHING, "folder": TEXT},
            given(policy=policy(), model=start, rounds=3),
        ),
        entry(
            flower.watch,
            {
                "grid": NOTHING,
                "deadline": POSITIVE,
                "quorum": maybe(NOTHING),
                "log": maybe(TEXT),
                "controller": maybe(NOTHING),
                "target": maybe(NOTHING),
                "patience": NOTHING,
                "wait": POSITIVE,
            },
            lambda: {"grid": FakeGrid({1: [0.1]}), "deadline": 1.0},
            explains=True,
        ),
        entry(
            flower.Strategy,
            {
                "policy": NOTHING,
                "folder": TEXT,
                "overwrite": FLAG,
                "fraction_evaluate": NOT_NEGATIVE,
                "configure": CALLBACK,
                "train_metrics_aggr_fn": CALLBACK,
                "evaluate_metrics_aggr_fn": CALLBACK,
                "weighted_by_key": TEXT,
                "arrayrecord_key": TEXT,
                "configrecord_key": TEXT,
            },
            given(policy=policy()),
        ),
    ]


ENTRIES = _entries() if find_spec("flwr") is not None else []
