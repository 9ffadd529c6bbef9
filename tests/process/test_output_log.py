"""The log is redacted and bounded, whatever comes in and however it is cut."""

import errno
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstuck.process.output_log import OutputLog
from unstuck.redaction.redactor import Redactor, redactor

TOKEN = "ghp_" + "a1B2c3D4e5" * 4
KEY = "-----BEGIN PRIVATE KEY-----\n" + ("MIIE" + "a1B2c3D4e5" * 6 + "\n") * 20 + "-----END PRIVATE KEY-----\n"


def spooled(log: Path, *chunks: bytes, head: int = 40_000_000, tail: int = 8_000_000) -> OutputLog:
    with OutputLog(log, Redactor(), head=head, tail=tail) as spool:
        for chunk in chunks:
            spool.feed(chunk)
    return spool


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, 2000), max_size=12))
def test_however_the_output_is_cut_the_log_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    log = tmp_path_factory.getbasetemp() / "cut.log"
    log.unlink(missing_ok=True)
    text = f"é start {TOKEN}\n{KEY}middle \N{SNOWMAN}\n{TOKEN}{TOKEN} end\n".encode()
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    spooled(log, *(text[start:end] for start, end in pairwise(places)))
    expected = "é start [redacted]\n[redacted]\nmiddle \N{SNOWMAN}\n[redacted] end\n"
    assert log.read_text() == expected


@pytest.mark.parametrize("before", range(65536 - 60, 65536 + 60, 7))
def test_a_secret_in_an_endless_line_is_redacted_wherever_the_line_is_cut(tmp_path: Path, before: int) -> None:
    line = b"." * before + TOKEN.encode() + b"." * 200_000
    spooled(tmp_path / "log", *(line[start : start + 4096] for start in range(0, len(line), 4096)))
    assert (tmp_path / "log").read_text() == "." * before + "[redacted]" + "." * 200_000 + "\n"


def test_complete_lines_are_on_disk_at_once(tmp_path: Path) -> None:
    with OutputLog(tmp_path / "log", Redactor()) as spool:
        spool.feed(b"one\ntw")
        assert (tmp_path / "log").read_text() == "one\n"
        assert spool.last_line == "one"


def test_the_two_streams_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    with OutputLog(tmp_path / "log", Redactor()) as spool:
        spool.feed(b"out ", "stdout")
        spool.feed(b"err\n", "stderr")
        spool.feed(b"put\n", "stdout")
    assert (tmp_path / "log").read_text() == "err\nout put\n"


def test_a_log_is_added_to_and_never_replaced(tmp_path: Path) -> None:
    spooled(tmp_path / "deep" / "log", b"first")
    spooled(tmp_path / "deep" / "log", b"second")
    assert (tmp_path / "deep" / "log").read_text() == "first\nsecond\n"


def test_of_a_very_long_output_the_head_and_the_tail_are_kept(tmp_path: Path) -> None:
    lines = [b"line %06d %s\n" % (number, TOKEN.encode()) for number in range(60_000)]
    spool = spooled(tmp_path / "log", *lines, head=100_000, tail=200_000)
    kept = (tmp_path / "log").read_text().splitlines()
    gap = next(place for place, line in enumerate(kept) if line.startswith("[unstuck: "))
    assert kept[gap] == f"[unstuck: {kept[gap].split()[1]} MB of output left out here]"
    assert kept[:gap] == [f"line {number:06} [redacted]" for number in range(gap)]
    assert kept[gap + 1 :] == [f"line {number:06} [redacted]" for number in range(60_001 - len(kept) + gap, 60_000)]
    assert 200_000 < (tmp_path / "log").stat().st_size < 301_000
    assert spool.size == sum(map(len, lines))


def test_an_output_just_longer_than_the_head_is_kept_whole(tmp_path: Path) -> None:
    lines = [b"line %06d\n" % number for number in range(1000)]
    spooled(tmp_path / "log", *lines, head=5000, tail=8000)
    assert (tmp_path / "log").read_bytes() == b"".join(lines)


def test_memory_stays_bounded(tmp_path: Path) -> None:
    block = b"x" * 99 + b"\n"
    tracemalloc.start()
    try:
        with OutputLog(tmp_path / "log", Redactor(), head=100_000, tail=1_000_000) as spool:
            for _ in range(300):
                spool.feed(block * 1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert spool.size == 30_000_000
    assert peak < 6_000_000


def test_a_full_disk_ends_the_log_and_nothing_else() -> None:
    with OutputLog(Path("/dev/full"), Redactor()) as spool:
        spool.feed(b"one\n")
        spool.feed(b"two\n")
    assert spool.error is not None
    assert spool.error.errno == errno.ENOSPC
    assert (spool.size, spool.tail, spool.last_line) == (8, "one\ntwo\n", "two")


def test_a_log_that_cannot_be_opened_is_remembered(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    spool = spooled(tmp_path / "file" / "log", b"one\n")
    assert spool.error is not None
    assert spool.tail == "one\n"


def test_the_tail_is_short_redacted_text_without_zero_bytes(tmp_path: Path) -> None:
    with OutputLog(tmp_path / "log", redactor({"MY_TOKEN": "hunter2hunter2"})) as spool:
        spool.feed(b"".join(b"%d hunter2hunter2 \0 \xff\xfe\n" % number for number in range(10_000)))
    assert len(spool.tail) == 8192
    assert spool.last_line == "9999 [redacted] � ��"
    assert "hunter2" not in spool.tail
    assert "\0" not in spool.tail


def test_the_last_line_skips_empty_ones_and_progress_bars(tmp_path: Path) -> None:
    assert spooled(tmp_path / "log", b"10%\r20%\r30%\n \n\n").last_line == "30%"
    assert spooled(tmp_path / "log").last_line == ""
