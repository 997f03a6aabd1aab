"""Vectors for clients: what applies to which job, and how they are saved."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cafe.rounds import Merge
from cafe.rounds.client_vectors import ClientVectors

BOTH = np.array([0, 1])
NONE = np.zeros(2)


def test_a_job_uses_the_vectors_that_applied_when_it_started() -> None:
    vectors = ClientVectors()
    vectors.begin(0, BOTH)
    vectors.adopt(Merge(NONE, offset=np.array([[1.0, 1.0], [2.0, 2.0]])), BOTH)
    vectors.begin(1, BOTH)
    vectors.adopt(Merge(NONE, common=np.array([10.0, 20.0])), BOTH)
    vectors.begin(2, BOTH)
    clients, invitations = np.array([0, 1, 1]), np.array([0, 1, 2])
    assert vectors.offsets(clients, invitations, 2).tolist() == [[0, 0], [2, 2], [12, 22]]
    assert vectors.used_by(1).count(np.array([0, 5])) == 1
    assert vectors.used_by(2).count(np.array([0, 5])) == 2
    vectors.forget([2])
    assert vectors.begun.keys() == {2}
    assert vectors.used_by(1).offset(1) is None


def test_the_common_vector_is_zero_before_there_is_one() -> None:
    vectors = ClientVectors()
    assert vectors.common_or_zeros(3).tolist() == [0.0, 0.0, 0.0]
    assert not vectors.used
    vectors.adopt(Merge(NONE, frozen=np.array([True, False, True])), BOTH)
    assert vectors.used


def test_vectors_are_copies_that_cannot_be_written() -> None:
    given, vectors = np.array([1.0, 2.0]), ClientVectors()
    vectors.adopt(Merge(NONE, common=given), BOTH)
    given[:] = 0.0
    assert vectors.common is not None
    assert vectors.common.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        vectors.common[0] = 3.0


def test_a_vector_that_several_jobs_use_is_saved_once() -> None:
    vectors = ClientVectors()
    vectors.adopt(Merge(NONE, common=np.array([1.0, 2.0])), BOTH)
    for invitation in range(3):
        vectors.begin(invitation, BOTH)
    arrays, saved = vectors.save()
    assert [*arrays] == ["vector.0"]
    again = ClientVectors.restore(arrays, json.loads(json.dumps(saved)))
    assert again.common_or_zeros(2).tolist() == [1.0, 2.0]
    assert again.used_by(1).common is again.common
    assert again.begun.keys() == {0, 1, 2}


def test_offsets_are_the_sums_of_what_each_job_adds() -> None:
    """Jobs with both vectors, with one of them, and with none."""
    vectors = ClientVectors()
    for number, (own_of_0, common_of_all) in enumerate(
        [([1.0, 2.0], [10.0, 20.0]), ([1.0, 2.0], None), (None, [10.0, 20.0]), (None, None)]
    ):
        vectors.own = {} if own_of_0 is None else {0: np.array(own_of_0)}
        vectors.common = None if common_of_all is None else np.array(common_of_all, np.float32)
        vectors.begin(number, np.array([0, 1]))
    found = vectors.offsets(np.array([0, 1, 0, 0, 0]), np.array([0, 0, 1, 2, 3]), 2)
    assert found.dtype == np.float32
    assert found.tolist() == [[11.0, 22.0], [10.0, 20.0], [1.0, 2.0], [10.0, 20.0], [0.0, 0.0]]
