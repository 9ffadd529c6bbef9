"""Edge: Give a run its fleet: the remote, the office that hands out jobs, and the dispatcher that waits for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace

from unstuck.compose.fleets.stores import project_of
from unstuck.config import Config, RemediesConfig, StoreConfig
from unstuck.errors import BadUsage
from unstuck.git import GitWorkspace, Repository
from unstuck.journal import Store
from unstuck.line import NoRemedies, Supervisor, redacted, settled


@contextmanager
def staffed(supervisor: Supervisor, journal: Store, config: Config, repository: Repository) -> Iterator[Supervisor]:
    """Let a fleet do the work of a run, where the configuration names a store; else everything stays as it is."""
    if not config.store.url:
        yield supervisor
        return
    from unstuck.fleet import Far, Office, PostgresJournal, Remote, Sheet, Shelf  # noqa: PLC0415  # an extra

    bench = supervisor.bench
    assert isinstance(bench.workspace, GitWorkspace)
    assert isinstance(journal, PostgresJournal)
    remote = Remote(
        git=repository.git,
        objects=repository.common_dir / "objects",
        identity=bench.workspace.identity,
        name=_known(repository, config.store.remote),
    )
    parts = {field.name: getattr(bench.workspace, field.name) for field in fields(bench.workspace)}
    shelf = Shelf(**parts, remote=remote, first=bench.spare)
    sheet = Sheet(
        config=_shared(config), gates=bench.gates, left_out=bench.workspace.left_out, cache=config.verify.cache
    )
    if redacted(sheet, bench.redactor) != sheet:
        raise BadUsage(
            "The configuration has a secret in a command, and every worker would have to be told it.",
            hint="Let the command read it from a variable that the workers have.",
        )
    office = Office(
        store=config.store.url,
        project=project_of(repository),
        run=bench.run,
        token=journal.token,
        labels=config.store.labels,
        priority=config.store.priority,
    )
    office.seen = bench.seen
    shelf.take_up()
    shelf.restore(bench.record.state)
    over = False
    office.open(sheet)
    try:
        yield replace(
            supervisor,
            bench=replace(
                bench,
                workspace=shelf,
                dispatch=lambda bench: Far(bench, office, shelf),
                remedies=NoRemedies(),  # what they would mend is not this machine
            ),
        )
        over = settled(bench.record.state)
    finally:
        office.close(over=over)


def _shared(config: Config) -> Config:
    """Return what workers go by: not the agents, which are theirs, and not what concerns this machine alone."""
    return replace(config, agents={}, profiles={}, remedies=RemediesConfig(), store=StoreConfig())


def _known(repository: Repository, remote: str) -> str:
    """Return the remote by its address; a name that git does not know is told before anything begins."""
    if repository.git.succeeds("remote", "get-url", remote):
        return repository.git("remote", "get-url", "--push", remote)
    if repository.git.succeeds("ls-remote", "--quiet", remote, "HEAD"):
        return remote
    raise BadUsage(
        f"There is no remote {remote!r} that all machines could share.",
        hint="Make a bare repository, and name it in [store]: remote = 'ssh://HOST/PATH'.",
    )
