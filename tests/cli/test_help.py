"""Help: the first page lists the verbs in order; the page of each verb has examples."""

from __future__ import annotations

import re
import shlex

import click
import typer

from cafe import cli
from cafe.cli import help_pages

ORDER = [
    "demo",
    "fit",
    "plan",
    "expect",
    "frontier",
    "simulate",
    "compare",
    "sweep",
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


def every_command() -> dict[str, click.Command]:
    """The commands with a page of their own, by the words that call them."""
    group = typer.main.get_command(cli.app)
    assert isinstance(group, click.Group)
    found = dict(group.commands)
    federate = found.pop("federate")
    assert isinstance(federate, click.Group)
    return found | {f"federate {name}": each for name, each in federate.commands.items()}


def test_each_page_ends_with_examples_that_can_be_parsed() -> None:
    commands = every_command()
    assert commands.keys() == help_pages.EXAMPLES.keys()
    for words, command in commands.items():
        context = click.Context(command, info_name=f"cafe {words}", max_content_width=80)
        page = command.get_help(context)
        examples = re.findall(rf"^    cafe {words}(.*)$", page, re.MULTILINE)
        assert len(examples) == len(help_pages.EXAMPLES[words]) > 0
        for options in examples:
            # An unknown option, or an argument that is missing, raises an error here.
            command.make_context(words, shlex.split(options), resilient_parsing=False)
        assert max(map(len, page.splitlines())) <= 80
