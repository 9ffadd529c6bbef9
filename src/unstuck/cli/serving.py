"""Edge: `mcp`: recovery as tools for any agent that speaks the Model Context Protocol."""

from pathlib import Path

import click

from unstuck.errors import Unavailable


@click.command()
@click.option(
    "--workspace",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    help="The folder that all paths are confined to.  [default: here]",
)
@click.option("--profile", default="adaptive", help="How to decide.  [default: adaptive]")
def mcp(*, workspace: Path, profile: str) -> None:
    """Serve recovery tools on stdin and stdout; agents start this."""
    try:
        from unstuck.mcp import serve  # noqa: PLC0415  # an extra: it need not be there
    except ImportError as error:
        raise Unavailable(
            f"The MCP server needs a package that is not installed: {error.name}.",
            hint="Install it: pip install 'unstuck[mcp]'",
        ) from error
    serve(workspace.absolute(), profile)
