"""Directive `command`: the help of each command of a program, from the program's parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from importlib import import_module

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_FORMATTER = partial(argparse.HelpFormatter, width=80)


class Command(SphinxDirective):
    """A section for each command: what it does, how it is called, and all its options.

    The argument is a module with a function ``parser()``, such as ``privclust.command``.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        whole = import_module(self.arguments[0]).parser()
        return [section(whole.prog, name, command) for name, command in commands(whole)]


def commands(whole: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the commands by name, in the order of the help."""
    for action in whole._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def section(program: str, name: str, command: argparse.ArgumentParser) -> nodes.section:
    """Return what is said of a command."""
    command.formatter_class = _FORMATTER
    usage = command.format_usage().removeprefix("usage: ").rstrip()
    content = nodes.section(ids=[f"{program}-{name}"], names=[f"{program} {name}"])
    content += nodes.title("", "", nodes.literal("", command.prog))
    content += nodes.paragraph("", command.description)
    content += nodes.literal_block(usage, usage, language="text")
    for group in command._action_groups:
        actions = [action for action in group._group_actions if action.dest != "help"]
        if actions:
            if group not in (command._positionals, command._optionals):
                content += nodes.rubric("", group.title.capitalize())
            if group.description:
                content += nodes.paragraph("", group.description)
            content += nodes.definition_list("", *(entry(command, action) for action in actions))
    return content


def entry(command: argparse.ArgumentParser, action: argparse.Action) -> nodes.definition_list_item:
    """Return how an argument is written, and what it is."""
    formatter = command._get_formatter()
    invocation = formatter._format_action_invocation(action)
    said = [formatter._expand_help(action)] if action.help else []
    if action.required and action.option_strings:
        said.append("needed" if said else "Needed.")
    text = "; ".join(said) or "needed"
    return nodes.definition_list_item(
        "",
        nodes.term("", "", nodes.literal("", invocation)),
        nodes.definition("", nodes.paragraph("", text)),
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command", Command)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
