"""``penstock balance``: how a running system is balanced."""

from __future__ import annotations

import json as json_text
import time
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.printing import JsonOption
from penstock.cli.target import HomeOption, connected
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.control.answer_models import BalanceAnswer

BALANCE_EXAMPLES = """\
[bold]Examples[/bold]

penstock balance                                      what holds now, and who said so

penstock balance correlation                          with the usual settings

penstock balance correlation every=5s patience=3      with some of one's own

penstock balance off                                  nothing moves by itself any more
"""


def balance(
    policy: Annotated[
        str | None, typer.Argument(metavar="[POLICY]", help="How load is balanced from now on.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings, as under balance: in a file."),
    ] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Show how the system is balanced, or have it balanced in another way.

    What is said here holds until it is said otherwise here, whatever files submitted later say.
    Settings that are not named have their usual values.
    """
    if policy is not None and "=" in policy:
        raise UsageError(
            f"{policy} comes without a policy",
            hint=f"Name it first: penstock balance correlation {policy}",
        )
    from penstock.balance.settings import shown_value

    given = dict(_pair(written) for written in settings or ())
    client = connected(home)
    found = client.balance() if policy is None else client.set_balance(policy, given)
    if json:
        print(json_text.dumps(found.model_dump(mode="json"), indent=2))
        return
    print(balance_line(found))
    for key, value in found.settings.items():
        print(f"  {key:<10} {shown_value(value)}")


def _pair(written: str) -> tuple[str, str]:
    key, equals, value = written.partition("=")
    if not (key and equals and value):
        raise UsageError(f"{written} is no setting", hint="Write KEY=VALUE, for example every=5s.")
    return key, value


def balance_line(found: BalanceAnswer) -> str:
    """How a system is balanced and who said so."""
    return f"balance: {found.text}; {_said_by(found)}"


def _said_by(found: BalanceAnswer) -> str:
    if found.set_by == "nobody" or found.at_s is None:
        return "nobody has said anything else"
    by = "command" if found.set_by == "command" else f"the file of {found.submission}"
    return f"by {by}, {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(found.at_s))}"


def submitted_line(found: BalanceAnswer, name: str) -> str:
    """What came of what a submitted file says of it."""
    if found.set_by == "file" and found.submission == name:
        return f"the system is balanced as this file says: {found.text}"
    return (
        f"the system stays balanced as commanded: {found.text}; what this file says of it does "
        "not count (penstock balance changes it)"
    )
