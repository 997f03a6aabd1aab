"""Errors of clients are told in plain words."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import Error
from flwr.common.constant import ErrorCode

from cafe.flower.reply_errors import explain_error, is_offline

RAISED = ErrorCode.CLIENT_APP_RAISED_EXCEPTION


def test_the_clients_own_words_follow_the_reason() -> None:
    assert explain_error(Error(RAISED, "KeyError: 'x'")) == (
        "its training function failed: KeyError: 'x'"
    )
    assert explain_error(Error(RAISED, "<class 'KeyError'>:<''x''>")) == (
        "its training function failed: KeyError: 'x'"
    )
    assert explain_error(Error(RAISED, "\x1b[36mred\x1b[0m")) == "its training function failed: red"
    assert explain_error(Error(RAISED, "")) == "its training function failed"


def test_of_a_long_traceback_the_begin_and_the_end_are_kept() -> None:
    told = explain_error(Error(RAISED, "begin " + 1000 * "x" + " KeyError: 'the end'"))
    assert told.startswith("its training function failed: begin xxx")
    assert told.endswith("xxx KeyError: 'the end'")
    assert " ... " in told
    assert len(told) < 250


def test_other_errors_have_a_reason_and_no_words_of_the_client() -> None:
    gone = Error(ErrorCode.NODE_UNAVAILABLE, "details of Flower")
    assert explain_error(gone) == "it is no longer connected"
    assert is_offline(gone)
    assert not is_offline(Error(RAISED, "offline"))
    assert explain_error(Error(99, "x")) == "Flower's error 99"
