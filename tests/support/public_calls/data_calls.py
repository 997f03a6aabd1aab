"""Calls of examples, partitions and learners."""

from __future__ import annotations

from cafe import data
from cafe.data import Examples, Shards
from cafe.learn.linear import Logistic, Ridge
from cafe.learn.mlp import MLP
from cafe.learn.quadratic import Quadratic
from cafe.learn.schedules import LearningRate
from cafe.learn.server_optimisers import Adam, Momentum
from tests.support.public_calls.samples import (
    LABELS,
    PATH,
    entry,
    examples,
    folder,
    given,
    rng,
    shards,
)
from tests.support.wrong_calls import (
    FLAG,
    NATURAL,
    NOT_NEGATIVE,
    NOTHING,
    POSITIVE,
    POSITIVES,
    TEXT,
    kind,
    maybe,
)

ENTRIES = [
    entry(
        Examples,
        {"x": kind("matrix"), "y": kind("numbers", "matrix")},
        given(x=[[1.0], [2.0]], y=[0, 1]),
    ),
    entry(
        Shards,
        {"rows": NOTHING, "starts": NOTHING},
        given(rows=[0, 1, 2], starts=[0, 2, 3]),
        words={"starts": "at least one client"},
    ),
    entry(
        Shards.of,
        {"by_client": NOTHING},
        given(by_client=[[0, 1], [2]]),
        words={"by_client": "shards"},
    ),
    *(
        entry(each, kinds, given(), use=lambda cut: cut(LABELS, 2, rng()))
        for each, kinds in (
            (data.IID, {"per_client": maybe(NOTHING)}),
            (data.Biased, {"share": NOT_NEGATIVE, "points": NOTHING, "per_client": maybe(NOTHING)}),
            (data.Classes, {"each": NOTHING, "per_client": maybe(NOTHING)}),
            (data.Dirichlet, {"alpha": POSITIVE, "least": NOTHING}),
            (data.Quantity, {"alpha": POSITIVE, "least": NOTHING}),
            (data.Random, {"least": NOTHING, "most": maybe(NOTHING)}),
            (data.Single, {"least": NOTHING, "most": maybe(NOTHING)}),
        )
    ),
    *(
        entry(
            each().__call__,
            {"labels": NOTHING, "clients": NOTHING, "rng": NOTHING},
            lambda: {"labels": LABELS, "clients": 3, "rng": rng()},
            name=f"data.{each.__name__}()",
            words={"labels": "examples"},
        )
        for each in (data.IID, data.Biased, data.Classes, data.Dirichlet, data.Quantity)
    ),
    entry(
        data.allocate,
        {"labels": NOTHING, "counts": NOTHING, "rng": NOTHING},
        lambda: {"labels": examples().y, "counts": [[1, 1, 1], [2, 0, 0]], "rng": rng()},
    ),
    entry(
        data.class_counts,
        {"labels": NOTHING, "shards": NOTHING},
        lambda: {"labels": examples().y, "shards": shards()},
    ),
    entry(
        data.load,
        {"name": NOTHING, "folder": maybe(TEXT), "fetching": NOTHING},
        given(name="digits"),
    ),
    entry(data.load_npz, {"path": PATH}, lambda: {"path": folder() / "data.npz"}),
    entry(data.load_images, {"folder": PATH}, lambda: {"folder": folder() / "images"}),
    # Learners.
    entry(
        Logistic,
        {"inputs": NOTHING, "classes": NOTHING, "l2": POSITIVE},
        given(inputs=3, classes=3, l2=0.1),
    ),
    entry(
        Ridge,
        {"inputs": NOTHING, "l2": POSITIVE, "classes": NATURAL},
        given(inputs=3, l2=0.1),
    ),
    entry(
        MLP,
        {
            "inputs": NOTHING,
            "classes": NOTHING,
            "hidden": kind("[]"),
            "l2": NOT_NEGATIVE,
            "threads": maybe(NOTHING),
            "compiled": FLAG,
            "init": NOTHING,
        },
        given(inputs=3, classes=3),
    ),
    entry(Quadratic, {"inputs": NOTHING, "hessian": POSITIVES}, given(inputs=2)),
    entry(LearningRate, {"beta": POSITIVE, "gamma": NOT_NEGATIVE}, given(beta=1.0, gamma=1.0)),
    entry(Momentum, {"rate": POSITIVE, "momentum": NOT_NEGATIVE}, given()),
    entry(
        Adam,
        {
            "rate": POSITIVE,
            "first": NOT_NEGATIVE,
            "second": NOT_NEGATIVE,
            "floor": POSITIVE,
            "yogi": FLAG,
        },
        given(),
    ),
]
