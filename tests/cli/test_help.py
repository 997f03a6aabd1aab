"""The first page of help: the verbs in the order of the workflow, each in one whole line."""

from __future__ import annotations

import re

import click
import typer

from cafe import cli

ORDER = [
    "demo",
    "fit",
    "plan",
    "expect",
    "frontier",
    "simulate",
    "compare",
    "report",
    "policies",
    "federate",
    "reproduce",
]


def test_first_page_lists_the_verbs_in_the_order_of_the_workflow() -> None:
    group = typer.main.get_command(cli.app)
    page = group.get_help(click.Context(group, info_name="cafe", max_content_width=80))
    lines = page.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == ORDER
    for line in lines:
        assert re.fullmatch(r"  \w+ +[A-Z][^.]*\.", line), "one sentence that is not cut off"
        assert len(line) <= 80
