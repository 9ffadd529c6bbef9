"""The law of conservation: what a test asserted before must be asserted after, somewhere, as strictly.

Tests may be renamed, moved, split, merged, parametrised or written in another style. What may not happen is that an
assertion vanishes, says less, or expects something else without anybody having asked for it.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from unstuck.verify.tamper.change import Finding
from unstuck.verify.tamper.losses import Gain, Loss, Pool, World
from unstuck.verify.tamper.rules import found
from unstuck.verify.tamper.strictness import TRUTHS, as_strict, contradicts, covers, is_wider
from unstuck.verify.tamper.suite import NOTHING, WEAK, Assertion, Case

NEUTRAL = frozenset(
    {"read", "read_text", "read_bytes", "getvalue", "decode", "encode", "open", "Path", "join", "strip", "str", "text"}
)
"""Names that say how a result is looked at, not what was tested."""
Exact = tuple[str, int, float]


def judge_losses(pairs: Sequence[tuple[Case, Case | None]], fresh: Sequence[Case], world: World) -> Iterator[Finding]:
    """Compare each old case with what it became; `fresh` are the new tests that no old one became."""
    losses, pool = _difference(pairs, fresh)
    for level in (_same_shape, _same_elsewhere, _absorbed, _absorbed_elsewhere):
        losses = [loss for loss in losses if not level(loss, pool, world)]
    open_losses: dict[int, list[Loss]] = {}
    for loss in losses:
        open_losses.setdefault(id(loss.case), []).append(loss)
    kept = {
        _exact(one)
        for _, became in pairs
        if became is not None and became.kind == "test" and not became.skip and not became.hidden
        for one in became.assertions
        if "_" not in one.key.split()
    }
    for case, became in pairs:
        left = open_losses.get(id(case), [])
        if became is None:
            yield from _deleted(case, left, fresh, world, kept)
        elif left:
            yield from _changed(case, became, left, world)
        elif _only_values_differ(case, became, world):
            says = f"{case.name} works with other values than before."
            lost = ", ".join(sorted(case.literals - became.literals))
            yield found("expected-changed", became.path, became.line, says, lost)
        elif not case.assertions and case.calls and not became.calls and case.kind == "test":
            yield found(
                "test-emptied",
                became.path,
                became.line,
                f"The test {case.name} no longer does anything.",
                case.body[:200],
            )


def _only_values_differ(case: Case, became: Case, world: World) -> bool:
    """Tell whether a test or fixture is the same but for its values."""
    if case.body == became.body or not case.shape or case.hidden or (case.skip and not case.skip_is_conditional):
        return False
    lost = case.literals - became.literals
    lost -= frozenset().union(*(one.literals for one in case.assertions))  # they are judged where they are asserted
    if case.kind == "aid":
        lost -= world.literals
    return case.shape == became.shape and bool(lost)


def _difference(pairs: Sequence[tuple[Case, Case | None]], fresh: Sequence[Case]) -> tuple[list[Loss], Pool]:
    losses: list[Loss] = []
    pool = Pool()
    for case, became in pairs:
        if (case.skip and not case.skip_is_conditional) or case.hidden:
            continue
        kept = Counter(_exact(one) for one in became.assertions) if became is not None else Counter()
        had = Counter(_exact(one) for one in case.assertions)
        own = [Gain(one, became) for one in _surplus(became.assertions, had)] if became is not None else []
        if became is not None and became.kind == "test" and not became.hidden:
            for gain in own:
                pool.add(gain)
        if case.kind == "test" or became is not None:
            losses += [Loss(one, case, became, own) for one in _surplus(case.assertions, kept) if one.rank > NOTHING]
    for case in fresh:
        for one in case.assertions if not case.skip and not case.hidden else ():
            pool.add(Gain(one, case))
    losses.sort(key=lambda loss: -loss.assertion.rank)
    return losses, pool


def _exact(one: Assertion) -> Exact:
    return one.key, one.rank, one.tolerance


def _surplus(assertions: Sequence[Assertion], other: Counter[Exact]) -> list[Assertion]:
    spare = other.copy()
    out: list[Assertion] = []
    for one in assertions:
        if spare[_exact(one)] > 0:
            spare[_exact(one)] -= 1
        else:
            out.append(one)
    return out


def _same_shape(loss: Loss, _pool: Pool, world: World) -> bool:
    return _take(loss, loss.own, world)


def _same_elsewhere(loss: Loss, pool: Pool, world: World) -> bool:
    return _take(loss, pool.by_skeleton.get(loss.assertion.skeleton, ()), world)


def _take(loss: Loss, gains: Sequence[Gain], world: World) -> bool:
    old = loss.assertion
    for gain in gains:
        new = gain.assertion
        if gain.uses or new.rank < old.rank or new.skeleton != old.skeleton or is_wider(old, new):
            continue
        renamed = old.names - new.names
        if new.key == old.key or not renamed or renamed <= world.vanished | world.local or _other_fixture(loss):
            gain.uses += 1
            return True
    return False


def _other_fixture(loss: Loss) -> bool:
    """Tell whether a test stands on another fixture now, whose methods have other names."""
    if loss.became is None:
        return False
    before, after = loss.case.requests, loss.became.requests
    return bool(before - after) and bool(after - before)


def _absorbed(loss: Loss, _pool: Pool, world: World) -> bool:
    return _absorb(loss, loss.own, world)


def _absorbed_elsewhere(loss: Loss, pool: Pool, world: World) -> bool:
    return _absorb(loss, pool.near(loss.assertion), world)


def _absorb(loss: Loss, gains: Iterable[Gain], world: World) -> bool:
    """Find an assertion that covers the lost one: the same literals in one of its cases, or in its aids."""
    for gain in gains:
        old, new, case = loss.assertion, gain.assertion, gain.case
        if contradicts(old, new):
            continue
        many = bool(case.rows) or case.open_rows or case.looped or (bool(old.literals) and old.literals <= new.literals)
        if (gain.uses and not many) or not as_strict(old, new):
            continue
        named = new.names | case.calls | case.requests
        about_error = new.relation == "raises" != old.relation
        about_it = old.names <= NEUTRAL or old.names & named or old.names & world.vanished or _other_fixture(loss)
        if old.names and not about_it and not about_error:
            continue
        if old.relation == "falsy" and new.relation == "eq":
            old = replace(old, literals=old.literals | {"False" if "False" in case.literals else "false"})
        if covers(old, new, case, world):
            gain.uses += 1
            return True
    return False


def _deleted(
    case: Case, left: list[Loss], fresh: Sequence[Case], world: World, kept: Container[Exact]
) -> Iterator[Finding]:
    if case.kind != "test" or case.hidden or (case.skip and not case.skip_is_conditional):
        return
    mentioned = case.calls | {name for one in case.assertions for name in one.names}
    if mentioned & world.gone or case.literals & world.gone_texts:
        return
    strong = [one for one in case.assertions if one.rank > NOTHING]
    if strong and all(_exact(loss.assertion) in kept for loss in left):
        return
    if not strong and any(case.calls <= other.calls for other in fresh):
        return
    evidence = left[0].assertion.text if left else case.body
    yield found(
        "test-deleted",
        case.path,
        case.line,
        f"The test {case.name} is gone, and nothing else asserts what it did.",
        evidence,
    )


def _changed(case: Case, became: Case, left: list[Loss], world: World) -> Iterator[Finding]:
    left = [loss for loss in left if not (loss.assertion.names & world.gone) and not _implied(loss.assertion, became)]
    if not left:
        return
    strong = [one for one in became.assertions if one.rank > NOTHING]
    if not strong:
        yield _nothing_left(case, became, left)
        return
    for loss in left:
        yield from _one_loss(loss, became, world)


def _implied(old: Assertion, became: Case) -> bool:
    """`is not None` beside `== 3` says nothing of its own, nor does "it raises nothing" where it is called anyway."""
    if old.relation == "quiet":
        return bool(became.assertions) and (not old.names or bool(old.names & became.calls))
    about, names = old.literals - TRUTHS, old.names - {"isinstance", "callable", "hasattr", "len"}
    return any(
        one.rank > old.rank
        and not one.idle
        and not contradicts(old, one)
        and names
        and names <= one.names
        and about <= one.literals
        for one in became.assertions
    )


def _nothing_left(case: Case, became: Case, left: list[Loss]) -> Finding:
    evidence = left[0].assertion.text
    idle = next((one for one in became.assertions if one.idle), None)
    if idle is not None:
        says = f"The assertion in {became.name} {idle.idle}."
        return found("assertion-unreachable", became.path, idle.line, says, evidence)
    if became.assertions:
        says = f"What {became.name} still asserts can never fail."
        return found(
            "assertion-vacuous",
            became.path,
            became.assertions[0].line,
            says,
            f"{evidence} → {became.assertions[0].text}",
        )
    return found(
        "test-emptied", became.path, became.line, f"The test {case.name} no longer asserts anything.", evidence
    )


def _one_loss(loss: Loss, became: Case, world: World) -> Iterator[Finding]:
    old = loss.assertion
    free = [gain for gain in loss.own if not gain.uses]
    close = sorted(
        free,
        key=lambda gain: (
            gain.assertion.skeleton != old.skeleton,
            -len(gain.assertion.names & old.names),
            abs(gain.assertion.line - old.line),
        ),
    )
    stricter = [
        gain
        for gain in close
        if gain.assertion.rank > old.rank and not gain.assertion.idle and not contradicts(old, gain.assertion)
    ]
    if stricter:
        stricter[0].uses += 1
        return
    same = [gain for gain in close if gain.assertion.rank >= old.rank and not gain.assertion.idle]
    if same:
        same[0].uses += 1
        yield from _same_rank(old, same[0].assertion, became, world)
    elif close:
        close[0].uses += 1
        yield _weaker(old, close[0].assertion, became)
    else:
        yield found(
            "assertion-removed",
            became.path,
            became.line,
            f"{became.name} no longer asserts this, and nothing else does.",
            old.text,
        )


def _same_rank(old: Assertion, new: Assertion, became: Case, world: World) -> Iterator[Finding]:
    evidence = f"{old.text} → {new.text}"
    if new.blurs < old.blurs and old.names - old.blurs <= new.names:
        return  # the value itself instead of its length
    if new.blurs - old.blurs or is_wider(old, new):
        says = f"{became.name} compares less of the value than before."
        yield found("assertion-loosened", became.path, new.line, says, evidence)
    elif not (old.literals <= new.literals and old.names & world.vanished and old.relation == new.relation):
        says = f"{became.name} expects something else than before."
        yield found("expected-changed", became.path, new.line, says, evidence)


def _weaker(old: Assertion, new: Assertion, became: Case) -> Finding:
    evidence = f"{old.text} → {new.text}"
    if new.idle and new.rank == NOTHING:
        return found(
            "assertion-unreachable", became.path, new.line, f"The assertion in {became.name} {new.idle}.", evidence
        )
    if new.rank == NOTHING:
        return found(
            "assertion-vacuous", became.path, new.line, f"What {became.name} asserts here can never fail.", evidence
        )
    says = f"{became.name} accepts more than before."
    return found(
        "assertion-loosened",
        became.path,
        new.line,
        says,
        evidence,
        severity=None if old.rank > WEAK or new.rank < WEAK else "ask",
    )
