"""Edge: Options that many commands have."""

from typing import Any

import click

run_option = click.option("--run", "run_id", metavar="RUN", help="The run; the latest one, if left out.")


def as_json(command: Any) -> Any:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)
