"""The bench as one page: inline SVG, no script, nothing from elsewhere. Pure."""

from collections.abc import Sequence
from html import escape

from benchmarks.supervisor.courses import PATHOLOGIES
from benchmarks.supervisor.figures import Estimate, Summary, Target

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 75em; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em } svg { display: block; max-width: 100% }
svg text { font: 12px system-ui, sans-serif; fill: #222 } table { border-collapse: collapse; font-size: 13px }
td, th { padding: .25em .6em; text-align: right; border-bottom: 1px solid #ddd } td:first-child, th:first-child { text-align: left }
.met { color: #176b2c } .missed { color: #a40e26; font-weight: 600 } .note { color: #555 }
"""
ABOUT = """real repositories, simulated agents with a known true solution and a named disease, the same seeds for everyone.
What counts is what hidden tests say of what landed. Bars and brackets are 95 % intervals."""
ROW = 26
LEFT = 170
WIDE = 460
CELL = 86
GOOD, BAD, LINE = "#3b7dd8", "#c8374a", "#444"


def page(found: Sequence[Summary], held: Sequence[Target]) -> str:
    """Write the whole page."""
    whole = [cell for cell in found if not cell.pathology]
    cells = [cell for cell in found if cell.pathology]
    trials = sum(cell.trials for cell in whole)
    body = [
        "<h1>Supervisors of coding agents, side by side</h1>",
        f"<p>{trials} trials: {ABOUT}</p>",
        "<ul>" + "".join(_target(target) for target in held) + "</ul>" if held else "",
        "<h2>Work truly done, of what the agent can do</h2>",
        bars(whole),
        "<h2>Every pathology</h2>",
        '<p class="note">The share truly done, and in red the harm.</p>',
        heat(cells),
        "<h2>What a landed task costs</h2>",
        scatter(whole),
        "<h2>All figures</h2>",
        figures(whole),
        "<h2>The diseases</h2>",
        "<table>"
        + "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in PATHOLOGIES.items())
        + "</table>",
    ]
    title = "Supervisors of coding agents"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>'
        f"<body>{''.join(body)}</body></html>\n"
    )


def _target(target: Target) -> str:
    return f'<li class="{"met" if target.met else "missed"}">{"met" if target.met else "missed"}: {escape(target.text)}</li>'


def bars(whole: Sequence[Summary]) -> str:
    """Draw one bar per supervisor with its interval, and the wrong work that landed beside it."""
    parts = []
    for at, cell in enumerate(whole):
        top = at * ROW
        parts.append(_text(0, top + 17, cell.supervisor))
        if cell.solved:
            one = cell.solved
            parts.append(f'<rect x="{LEFT}" y="{top + 5}" width="{one.value * WIDE:.1f}" height="16" fill="{GOOD}"/>')
            parts.append(_whisker(LEFT + one.low * WIDE, LEFT + one.high * WIDE, top + 13))
            parts.append(_text(LEFT + WIDE + 12, top + 17, f"{one.value:.0%}"))
        wrong = cell.false_dones + cell.regressions
        text = (
            f"{cell.false_dones} false dones, {cell.regressions} regressions landed"
            if wrong
            else "nothing wrong landed"
        )
        parts.append(_text(LEFT + WIDE + 60, top + 17, text, BAD if wrong else LINE))
    return _svg(LEFT + WIDE + 330, len(whole) * ROW, parts)


def heat(cells: Sequence[Summary]) -> str:
    """Draw pathologies against supervisors."""
    columns = list(dict.fromkeys(cell.supervisor for cell in cells))
    rows = list(dict.fromkeys(cell.pathology for cell in cells))
    parts = [
        f'<text transform="translate({LEFT + at * CELL + 16},112) rotate(-38)">{escape(name)}</text>'
        for at, name in enumerate(columns)
    ]
    parts += [_text(0, 138 + at * ROW, name) for at, name in enumerate(rows)]
    for cell in cells:
        left, top = LEFT + columns.index(cell.supervisor) * CELL, 120 + rows.index(cell.pathology) * ROW
        share = cell.solved.value if cell.solved else 0.0
        shown = f"{share:.0%}" if cell.solved else "-"
        parts.append(f'<rect x="{left}" y="{top}" width="{CELL - 3}" height="{ROW - 3}" fill="{_shade(share)}"/>')
        parts.append(_text(left + 6, top + 17, shown))
        harm = [
            f"{count}{mark}"
            for count, mark in (
                (cell.false_dones + cell.regressions, "✗"),
                (int(bool(cell.bytes_lost)), "⌫"),
                (cell.orphans, "☠"),
            )
            if count
        ]
        parts.append(_text(left + 12 + 8 * len(shown), top + 17, " ".join(harm), BAD))
    return _svg(LEFT + len(columns) * CELL + 60, 124 + len(rows) * ROW, parts) + (
        '<p class="note">✗ false dones and regressions landed · ⌫ something was lost · ☠ processes left</p>'
    )


def scatter(whole: Sequence[Summary]) -> str:
    """Draw attempts per landed task against the share done: up and to the left is better."""
    spots = [(cell, cell.attempts, cell.solved) for cell in whole if cell.attempts and cell.solved]
    if not spots:
        return ""
    most = max(attempts.value for _, attempts, _ in spots) * 1.15
    high, parts = 260, [_text(LEFT, 292, "attempts per landed task →"), _text(0, 14, "truly done ↑")]
    for tick in range(int(most) + 1):
        x = LEFT + tick / most * WIDE
        parts.append(
            f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{high}" stroke="#e4e4e4"/>'
            + _text(x - 3, high + 15, str(tick))
        )
    for level in (0.0, 0.5, 1.0):
        y = high - level * (high - 20)
        parts.append(f'<line x1="{LEFT}" y1="{y}" x2="{LEFT + WIDE}" y2="{y}" stroke="#e4e4e4"/>')
        parts.append(_text(LEFT - 40, y + 4, f"{level:.0%}"))
    for cell, attempts, solved in spots:
        x, y = LEFT + attempts.value / most * WIDE, high - solved.value * (high - 20)
        colour = BAD if cell.false_dones + cell.regressions else GOOD
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>' + _text(x + 8, y + 4, cell.supervisor)
        )
    return _svg(LEFT + WIDE + 200, 300, parts) + '<p class="note">Red: something wrong landed.</p>'


def figures(whole: Sequence[Summary]) -> str:
    """Write the table."""
    head = (
        "supervisor", "trials", "done", "truly done of doable", "false dones", "regressions", "good work lost", "bytes lost", "orphans",
        "pushed", "past the deadline", "attempts/task", "$/task", "minutes/task", "CPU s/attempt", "questions right", "left unsaid",
    )  # fmt: skip
    rows = [
        (
            cell.supervisor, cell.trials, cell.done, _share(cell.solved), cell.false_dones, cell.regressions, cell.good_lost,
            cell.bytes_lost, cell.orphans, cell.pushed, cell.overrun, _number(cell.attempts), _number(cell.dollars),
            _number(cell.minutes), _number(cell.cpu), f"{cell.right_questions} of {cell.questions}", cell.unasked,
        )
        for cell in whole
    ]  # fmt: skip
    top = "".join(f"<th>{escape(word)}</th>" for word in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{lines}</table>"


def _shade(share: float) -> str:
    """Return a blue that is the deeper the more was done."""
    pale, deep = (240, 245, 252), (120, 172, 235)
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in zip(pale, deep, strict=True))


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img">{"".join(parts)}</svg>'


def _text(x: float, y: float, text: str, colour: str = "#222") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" style="fill:{colour}">{escape(text)}</text>'


def _whisker(left: float, right: float, y: float) -> str:
    return (
        f'<line x1="{left:.1f}" y1="{y}" x2="{right:.1f}" y2="{y}" stroke="{LINE}"/>'
        f'<line x1="{left:.1f}" y1="{y - 4}" x2="{left:.1f}" y2="{y + 4}" stroke="{LINE}"/>'
        f'<line x1="{right:.1f}" y1="{y - 4}" x2="{right:.1f}" y2="{y + 4}" stroke="{LINE}"/>'
    )


def _share(one: Estimate | None) -> str:
    return f"{one.value:.0%} ({one.low:.0%} to {one.high:.0%})" if one else "-"


def _number(one: Estimate | None) -> str:
    return f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})" if one else "-"
