"""The command ``penstock context``: names for systems on other machines."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.printing import JsonOption, print_json, print_table

CONTEXT_EXAMPLES = """\
[bold]Examples[/bold]

ssh -L 7400:127.0.0.1:7400 big                     a controller listens to its own machine alone

penstock context add big http://127.0.0.1:7400 --token @big.token

penstock status --context big                      or export PENSTOCK_CONTEXT=big
"""

context_app = typer.Typer(
    help="Name systems on other machines, for --context.",
    epilog=CONTEXT_EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@context_app.command("add", epilog=CONTEXT_EXAMPLES)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the controller answers.")],
    token: Annotated[
        str,
        typer.Option(metavar="TEXT|@FILE", help="The system's token, or @ and a file with it."),
    ],
    json: JsonOption = False,
) -> None:
    """Keep the address and the token of a system under a name."""
    from penstock.cli.contexts import Context, contexts_file, keep_context
    from penstock.cli.target import token_in

    keep_context(name, Context(url.rstrip("/"), token_in(token)))
    if json:
        print_json({"name": name, "url": url.rstrip("/")})
    else:
        print(f"{name} is kept in {contexts_file()}; use it with --context {name}")


@context_app.command("ls", epilog=CONTEXT_EXAMPLES)
def ls(json: JsonOption = False) -> None:
    """List the names that are kept; never their tokens."""
    from penstock.cli.contexts import contexts

    known = contexts()
    if json:
        print_json([{"name": name, "url": context.url} for name, context in known.items()])
        return
    rows = [(name, context.url) for name, context in known.items()]
    print_table(("context", "url"), rows, "none are kept; try penstock context add")


@context_app.command("rm", epilog=CONTEXT_EXAMPLES)
def rm(name: Annotated[str, typer.Argument(metavar="NAME")], json: JsonOption = False) -> None:
    """Forget a name."""
    from penstock.cli.contexts import forget_context

    forget_context(name)
    if json:
        print_json({"name": name})
    else:
        print(f"{name} is forgotten")
