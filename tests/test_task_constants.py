"""The measured constants of a task: in closed form, by their properties, and against draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.data.examples import Shards
from cafe.errors import InputError
from cafe.learn.quadratic import Quadratic
from tests.support.convex_tasks import (
    COUNTS,
    HESSIAN,
    LEARNERS,
    each,
    losses_of,
    measure,
    measure_at,
    plainer,
    start_of,
    world,
)

steady = settings(derandomize=True, deadline=None, max_examples=30, database=None)


@pytest.fixture(params=LEARNERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ---------------------------------------------------------------------- quadratics, in closed form


@pytest.mark.parametrize("scaled", [True, False])
def test_quadratics_have_the_constants_of_theory(scaled: bool) -> None:
    data, shards = world("quadratic")
    start = start_of(LEARNERS["quadratic"])
    found = measure(LEARNERS["quadratic"], data, shards, batch=4, start=start, scaled=scaled)

    x = [data.x[rows].astype(float) for rows in each(shards)]
    sizes = np.array(COUNTS)
    scale = sizes * 4 / 24 if scaled else np.ones(4)
    means = np.array([points.mean(axis=0) for points in x])
    spreads = np.array([points.var(axis=0) for points in x])
    centre = np.average(means, axis=0, weights=scale)
    between = np.average((means - centre) ** 2, axis=0, weights=scale)
    within = np.average(spreads, axis=0, weights=scale)
    slopes = scale[:, None] * HESSIAN * (start - means)
    slope = HESSIAN * (start - centre)

    assert found.smoothness == pytest.approx(3.0 * scale.max())
    assert found.convexity == pytest.approx(0.5 * scale.min())
    np.testing.assert_allclose(found.model, centre, rtol=1e-12)
    assert found.optimum == pytest.approx(HESSIAN @ (between + within) / 2)
    np.testing.assert_allclose(found.optima, scale * (spreads @ HESSIAN) / 2)
    assert found.heterogeneity == pytest.approx(HESSIAN @ between / 2)
    noises = np.where(sizes > 4, scale**2 * (spreads @ HESSIAN**2) / 4, 0)
    np.testing.assert_allclose(found.start.noises, noises)
    np.testing.assert_allclose(found.start.noises, found.end.noises)
    assert found.noise == pytest.approx(noises.max())
    assert found.start.dissimilarity == pytest.approx(((slopes - slope) ** 2).sum(axis=1).mean())
    assert found.start.steepness == pytest.approx(slope @ slope)
    assert found.end.steepness == pytest.approx(0, abs=1e-20)
    assert found.distance == pytest.approx(((start - centre) ** 2).sum())


def test_problem_has_the_measured_constants() -> None:
    data, shards = world("quadratic")
    found = measure(LEARNERS["quadratic"], data, shards, batch=4, start=np.ones(3, np.float32))
    problem = found.problem()
    for name in ("smoothness", "convexity", "noise", "heterogeneity", "distance"):
        assert getattr(problem, name) == getattr(found, name)


def test_start_is_that_of_the_learner_by_default(name: str) -> None:
    data, shards = world(name)
    found = measure(LEARNERS[name], data, shards)
    assert found.distance == pytest.approx(found.model @ found.model)


# ---------------------------------------------------------------------------- the scaled objective


def test_clients_scaled_losses_average_to_the_pooled_mean(name: str) -> None:
    learner, (data, shards) = LEARNERS[name], world(name)
    found = measure(learner, data, shards)
    pooled = learner.losses(found.model.astype(np.float32), data, shards.rows).mean(dtype=float)
    assert found.optimum == pytest.approx(pooled, rel=1e-5)
    own = losses_of(learner, found.model.astype(np.float32), data, shards)
    assert np.mean(np.array(COUNTS) * 4 / 24 * own) == pytest.approx(pooled, rel=1e-5)
    for away in np.random.default_rng(0).normal(size=(5, found.model.size)) / 3:
        assert learner.score(found.model + away, data).loss > found.optimum


def test_unscaled_clients_count_equally(name: str) -> None:
    """The result is the same as with equal numbers of examples: 2, 5, 5, 12 become 60 each."""
    learner, (data, shards) = LEARNERS[name], world(name)
    alike = Shards.of([np.repeat(rows, 60 // len(rows)) for rows in each(shards)])
    one = measure(learner, data, shards, batch=3, scaled=False)
    other = measure(learner, data, alike, batch=3)
    np.testing.assert_allclose(one.model, other.model, atol=1e-6)
    np.testing.assert_allclose(one.optima, other.optima, rtol=1e-9)
    for constant in ("smoothness", "convexity", "optimum", "heterogeneity", "noise", "distance"):
        assert getattr(one, constant) == pytest.approx(getattr(other, constant), rel=1e-5)


def test_optimum_of_a_client_is_its_least_loss(name: str) -> None:
    learner, (data, shards) = LEARNERS[name], world(name)
    found = measure(learner, data, shards)
    scale = np.array(COUNTS) * 4 / 24
    for model in (found.model.astype(np.float32), start_of(learner), 0 * start_of(learner)):
        assert np.all(found.optima <= scale * losses_of(learner, model, data, shards) + 1e-6)


# --------------------------------------------------------------------------- heterogeneity and V


@steady
@given(
    st.sampled_from(sorted(LEARNERS)),
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.integers(0, 10**6),
)
def test_heterogeneity_and_dissimilarity(name: str, counts: list[int], seed: int) -> None:
    """Gamma is not negative, and V(w*) <= 2 L Gamma: each F_k is L-smooth, F's gradient is 0."""
    data, shards = world(name, tuple(counts), seed)
    found = measure(LEARNERS[name], data, shards)
    assert found.optimum - found.optima.mean() >= -1e-9
    assert found.end.dissimilarity <= 2 * found.smoothness * found.heterogeneity + 1e-9
    assert found.end.steepness <= 1e-12
    assert found.convexity <= found.smoothness


def test_equal_clients_are_not_heterogeneous(name: str) -> None:
    data, shards = world(name)
    same = Shards.of([shards[3]] * 5)
    found = measure(LEARNERS[name], data, same)
    assert found.heterogeneity == pytest.approx(0, abs=1e-9)
    assert found.start.dissimilarity == 0
    assert found.end.dissimilarity == 0


def test_isotropic_quadratics_attain_the_limit_of_dissimilarity() -> None:
    data, shards = world("quadratic", (6, 6, 6))
    found = measure(Quadratic(3, 2.0), data, shards)
    limit = 2 * found.smoothness * found.heterogeneity
    assert found.end.dissimilarity == pytest.approx(limit)
    assert found.start.dissimilarity == pytest.approx(limit)


# ----------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.slow
def test_noise_is_the_variance_of_batches(name: str, batch: int) -> None:
    """Batches as a run draws them, through the learner's own gradient."""
    learner, (data, shards) = LEARNERS[name], world(name)
    model, rng, draws = start_of(learner), np.random.default_rng(5), 4000
    found = measure_at(learner, model, data, shards, batch=batch)
    for client, rows in enumerate(each(shards)):
        scale = len(rows) * 4 / 24
        even = np.full(len(rows), scale / len(rows), dtype=np.float32)
        mean = learner.gradient(model, data, rows, even).astype(float)
        share = np.full(batch, scale / batch, dtype=np.float32)
        away = [
            learner.gradient(model, data, picked, share) - mean
            for picked in rng.choice(rows, (draws, batch))
        ]
        squares = np.square(away).sum(axis=1) * (len(rows) > batch)  # else it uses all, always
        error = squares.std() / np.sqrt(draws)
        assert abs(squares.mean() - found.noises[client]) <= 4 * error + 1e-6


def test_full_batches_have_no_noise(name: str) -> None:
    data, shards = world(name)
    found = measure(LEARNERS[name], data, shards)
    assert found.noise == 0
    assert found.start.mean_noise == 0


def test_client_with_at_most_one_batch_has_no_noise(name: str) -> None:
    learner, (data, shards) = LEARNERS[name], world(name)
    found = measure_at(learner, start_of(learner), data, shards, batch=5)
    assert (found.noises > 0).tolist() == [False, False, False, True]


def test_noise_at_the_end_may_be_larger() -> None:
    """If the start is the optimum of one client, the noise can be smaller there than at w*."""
    learner, (data, shards) = LEARNERS["ridge"], world("ridge")
    rows = shards[3]
    start = learner.minimum(data, rows, np.full(len(rows), 1 / len(rows))).model
    found = measure(learner, data, shards, batch=5, start=start)
    assert found.start.noise < found.noise == found.end.noise


def test_noise_is_the_maximum_over_clients_and_both_ends(name: str) -> None:
    data, shards = world(name)
    found = measure(LEARNERS[name], data, shards, batch=2)
    assert found.noise == max(found.start.noises.max(), found.end.noises.max())
    assert found.start.mean_noise == found.start.noises.mean()


def test_noise_of_ridge_is_convex_in_the_model() -> None:
    """So no model between two models has more noise than both of them."""
    learner, (data, shards) = LEARNERS["ridge"], world("ridge")
    one, other = start_of(learner, 1), start_of(learner, 2)
    ends = [measure_at(learner, w, data, shards, batch=1).noises for w in (one, other)]
    for share in (0.1, 0.5, 0.8):
        between = measure_at(learner, (1 - share) * one + share * other, data, shards, batch=1)
        assert np.all(between.noises <= (1 - share) * ends[0] + share * ends[1] + 1e-4)


def test_probed_gradients_agree_with_exact_noise(name: str) -> None:
    """With as many probes as examples, as exactly as float32 allows."""
    learner, (data, shards) = LEARNERS[name], world(name)
    model = start_of(learner)
    known = measure_at(learner, model, data, shards, batch=4)
    probed = measure_at(plainer(learner), model, data, shards, batch=4)
    np.testing.assert_allclose(known.noises, probed.noises, rtol=1e-4)
    assert known.dissimilarity == pytest.approx(probed.dissimilarity, rel=1e-4)
    assert known.steepness == pytest.approx(probed.steepness, rel=1e-4)
    assert measure_at(plainer(learner), model, data, shards).noise == 0


def test_few_probes_are_unbiased() -> None:
    learner, (data, shards) = LEARNERS["ridge"], world("ridge")
    model = start_of(learner)
    exact = measure_at(learner, model, data, shards, batch=4).noises
    tries = np.array(
        [
            measure_at(plainer(learner), model, data, shards, batch=4, probes=4, seed=seed).noises
            for seed in range(200)
        ]
    )
    error = tries.std(axis=0) / np.sqrt(200)
    assert np.all(error[1:] > 0)  # clients with more examples than probes
    assert np.all(np.abs(tries.mean(axis=0) - exact) <= 4 * error + 1e-4 * exact)


# ------------------------------------------------------------------------------------- the rest


def test_progress_rises_to_one() -> None:
    data, shards = world("ridge")
    shares: list[float] = []
    measure(LEARNERS["ridge"], data, shards, progress=shares.append)
    assert shares == sorted(shares)
    assert len(shares) == 5
    assert shares[-1] == 1.0
    shares.clear()
    measure_at(LEARNERS["ridge"], start_of(LEARNERS["ridge"]), data, shards, progress=shares.append)
    assert shares[-1] == 1.0


def test_learner_that_is_not_convex_is_refused() -> None:
    data, shards = world("ridge")
    with pytest.raises(InputError, match=r"convex learner, .*Got Plainer.*measure_at"):
        measure(plainer(LEARNERS["ridge"]), data, shards)


def test_at_least_one_probe_is_required() -> None:
    data, shards = world("ridge")
    with pytest.raises(InputError, match="probes must be a whole number from 1 up"):
        measure_at(LEARNERS["ridge"], start_of(LEARNERS["ridge"]), data, shards, probes=0)
