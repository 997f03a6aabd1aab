"""Evaluation: within a time limit, by the server or by its clients, even malicious ones."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.live.model_layout import Arrays
from cafe.live.server import serve
from cafe.live.wire import ClientScore
from cafe.policies import mcu
from cafe.report import run_page
from cafe.results import load
from tests.support.serving import config, read_status, stopped_after, wire
from tests.support.virtual_runs import VirtualWire


class Evaluations:
    """An evaluation that misbehaves at some versions."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.calls = list(answers), 0
        self.gate = threading.Event()

    def __call__(self, model: Arrays) -> Any:
        assert {name: array.shape for name, array in model.items()} == {
            "weight": (2, 3),
            "bias": (2,),
        }
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        if answer == "hang":
            self.gate.wait(60.0)
            return 9.0, 0.9
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_evaluation_on_the_server(tmp_path: Path) -> None:
    said: list[str] = []
    evaluate = Evaluations((4.0, 0.1), (3.0, None), ValueError("no data"), 7, (2.0, 0.5))
    history = serve(wire(), config(evaluate=evaluate, updates=5), tmp_path, say=said.append)
    assert history.curve is not None
    assert history.curve.loss.tolist() == [4.0, 3.0, 2.0]
    np.testing.assert_array_equal(history.curve.accuracy, [0.1, np.nan, 0.5])
    assert any("Version 3 was not evaluated: it failed: ValueError: no data." in s for s in said)
    assert any("Version 4 was not evaluated: it failed: TypeError" in s for s in said)
    assert read_status(tmp_path)["accuracy"] == 0.5


def test_evaluation_every_few_updates(tmp_path: Path) -> None:
    evaluate = Evaluations((1.0, 0.5))
    given = config(evaluate=evaluate, evaluate_every=3, updates=8)
    history = serve(wire(), given, tmp_path)
    assert history.curve is not None
    assert history.curve.updates.tolist() == [3, 6, 8]


def test_hanging_evaluation_times_out_once(tmp_path: Path) -> None:
    said: list[str] = []
    evaluate = Evaluations("hang", (2.0, 0.5))

    def say(sentence: str) -> None:
        said.append(sentence)
        if "an earlier evaluation is still running" in sentence and "Version 3" in sentence:
            evaluate.gate.set()
            for thread in threading.enumerate():
                if thread is not threading.current_thread() and thread.daemon:
                    thread.join(5.0)

    given = config(evaluate=evaluate, updates=5, evaluate_seconds=0.02)
    history = serve(wire(), given, tmp_path, say=say)
    assert [s for s in said if "not evaluated" in s] == [
        "Version 1 was not evaluated: it took longer than 0.02 s.",
        "Version 2 was not evaluated: an earlier evaluation is still running.",
        "Version 3 was not evaluated: an earlier evaluation is still running.",
    ]
    assert evaluate.calls == 3
    assert history.curve is not None
    # The result of the evaluation that hung is about an old model: it is not used.
    assert history.curve.updates.tolist() == [4, 5]
    assert history.curve.loss.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
@pytest.mark.slow
def test_non_finite_loss(tmp_path: Path, loss: float) -> None:
    history = serve(wire(), config(evaluate=Evaluations((loss, 0.9)), rounds=3), tmp_path)
    assert history.curve is not None
    assert np.isnan(history.curve.accuracy).all()
    assert read_status(tmp_path)["accuracy"] is None
    again = load(tmp_path).history.curve
    assert again is not None
    np.testing.assert_array_equal(again.loss, history.curve.loss)
    run_page.write(tmp_path / "page.html", [load(tmp_path)])


@pytest.mark.parametrize("accuracy", [float("nan"), float("inf")])
def test_non_finite_accuracy(tmp_path: Path, accuracy: float) -> None:
    at, given = wire(), config(evaluate=Evaluations((1.0, accuracy)), rounds=3)
    stopped_after(2, tmp_path, at, given)
    history = serve(at, given, tmp_path)
    assert history.curve is not None
    assert np.isnan(history.curve.accuracy).all()
    assert read_status(tmp_path)["accuracy"] is None


def test_evaluation_by_clients(tmp_path: Path) -> None:
    opinions: dict[str, Any] = {
        "c000": (1.0, 0.5, 10),
        "c001": (4.0, None, 30),
        "c002": (float("nan"), 0.5, 1000),
        "c003": (1.0, 1.5, 1000),
        "c004": (1.0, 0.5, 0),
        "c005": None,
    }
    at = wire(judge=lambda name, model: opinions[name])
    history = serve(at, config(evaluate="clients", evaluate_seconds=5.0, updates=2), tmp_path)
    assert history.curve is not None
    np.testing.assert_allclose(history.curve.loss, (1.0 * 10 + 4.0 * 30) / 40)
    np.testing.assert_allclose(history.curve.accuracy, 0.5)
    assert at.t >= 10.0  # the wait for a client that does not answer is limited
    assert at.t < 20.0


def test_evaluation_by_clients_ends_when_all_have_answered(tmp_path: Path) -> None:
    at = wire(judge=lambda name, model: (float(model["bias"][0]), 1.0, 1))
    history = serve(at, config(evaluate="clients", evaluate_seconds=99.0, updates=2), tmp_path)
    assert at.t < 20.0
    assert history.curve is not None
    assert history.model is not None
    assert history.curve.loss[-1] == pytest.approx(history.model[6])


def test_client_score_counts_once_and_only_if_requested(tmp_path: Path) -> None:
    at = wire(judge=lambda name, model: (2.0, 0.5, 1))
    original = at.receive_scores

    def receive_scores(tickets: Any) -> Any:
        found = [*original(tickets)]
        return [*found, *found, ClientScore("never asked", 900.0, 1.0, 999)]

    at.receive_scores = receive_scores  # type: ignore[method-assign]
    history = serve(at, config(evaluate="clients", evaluate_seconds=5.0, updates=1), tmp_path)
    assert history.curve is not None
    assert history.curve.loss.tolist() == [2.0]
    assert history.curve.accuracy.tolist() == [0.5]


def test_evaluation_without_client_scores(tmp_path: Path) -> None:
    said: list[str] = []
    given = config(evaluate="clients", evaluate_seconds=3.0, updates=2)
    history = serve(wire(), given, tmp_path, say=said.append)
    assert history.curve is not None
    assert len(history.curve) == 0
    assert sum("none of 6 clients answered within 3 s" in s for s in said) == 2
    run_page.write(tmp_path / "page.html", [load(tmp_path)])


def test_missing_evaluation_of_a_killed_server_is_repeated(tmp_path: Path) -> None:
    """The server was killed after the checkpoint of its last round and before the evaluation."""
    at, evaluate = wire(), Evaluations((1.0, 0.5))
    given = config(evaluate=evaluate, updates=3, evaluate_every=2)
    stopped_after(3, tmp_path, at, given)
    before = evaluate.calls
    history = serve(at, given, tmp_path)
    assert evaluate.calls == before + 1
    assert history.curve is not None
    assert history.curve.updates.tolist() == [2, 3]
    assert history.rounds == 3


def test_last_model_is_evaluated_even_if_the_last_round_failed(tmp_path: Path) -> None:
    at = wire(behave=lambda order: "silent" if order.round >= 4 else "report")
    given = config(mcu(quorum=1, deadline=9.0), evaluate=Evaluations((1.0, 0.5)), evaluate_every=3)
    history = serve(at, replace(given, rounds=6), tmp_path)
    assert history.updates == 4
    assert history.curve is not None
    assert history.curve.updates.tolist() == [3, 4]


def test_evaluation_waits_for_clients_after_a_restart(tmp_path: Path) -> None:
    """After a restart of everything, the missing score must come from the clients."""
    at = wire(judge=lambda name, model: (2.0, 0.5, 1))
    given = config(evaluate="clients", evaluate_seconds=30.0, updates=2)
    stopped_after(2, tmp_path, at, given)
    everyone, begin = list(at.names), at.t

    def back(at: VirtualWire) -> None:
        at.names = everyone if at.t > begin + 5.0 else []

    at.names, at.on_poll = [], back
    history = serve(at, given, tmp_path)
    assert history.curve is not None
    assert history.curve.updates.tolist() == [1, 2]
