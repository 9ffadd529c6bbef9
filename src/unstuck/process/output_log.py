"""Edge: Write a process's output to its log: redacted, and never more than 50 MB of it."""

import codecs
import os
from collections import deque
from pathlib import Path
from typing import Self

from unstuck.redaction.redactor import Redactor

MEGABYTE = 1_000_000
HEAD = 40 * MEGABYTE
"""So much goes to disk as it comes."""
TAIL = 8 * MEGABYTE
"""Of the rest, the last part is kept in memory and written when the process has ended."""
LEAD = 128 * 1024
"""Kept before the tail and then cut away, so that a secret which begins in it is known as one."""
MAX_LINE_CHARS = 64 * 1024
OVERLAP = 8 * 1024
"""Held back when a longer line is cut, so that a secret at the cut is seen whole."""
RECENT = 32 * 1024
TAIL_CHARS = 8 * 1024
SHORT_LINE = 500


class OutputLog:
    """One session's output. Streams are kept apart until a line is whole; memory stays bounded."""

    def __init__(
        self, log: Path, redactor: Redactor, *, transcript: Path | None = None, head: int = HEAD, tail: int = TAIL
    ) -> None:
        self._apart: dict[str, OutputLog] = {}
        """A spool of its own for each stream, where somebody will read them apart."""
        if transcript is not None:
            aside = transcript.with_name(f"{transcript.name}.err")
            self._apart = {"stdout": OutputLog(transcript, redactor), "stderr": OutputLog(aside, redactor)}
        self.size = 0
        """Bytes received, whether they were kept or not."""
        self.error: OSError | None = None
        """Why the log is not complete: once a write failed, the rest is only counted."""
        self._redactor = redactor
        self._head = head
        self._tail_size = tail
        self._streams: dict[str, _Lines] = {}
        self._recent = ""
        self._ring: deque[bytes] = deque()
        self._ring_size = 0
        self._left_out = 0
        self._log = -1
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            self.error = error

    def feed(self, chunk: bytes, stream: str = "") -> None:
        """Take what one stream has printed; complete lines go on at once."""
        self.size += len(chunk)
        if stream in self._apart:
            self._apart[stream].feed(chunk)
        lines = self._streams.setdefault(stream, _Lines())
        self._take(lines, lines.pending + lines.decoder.decode(chunk))

    def close(self) -> None:
        """Write what was held back: unfinished lines, and the tail of a very long log."""
        for spool in self._apart.values():
            spool.close()
        for lines in self._streams.values():
            rest = self._redactor.text(lines.pending + lines.decoder.decode(b"", final=True))
            if rest:
                self._keep(rest if rest.endswith("\n") else rest + "\n")
        self._streams.clear()
        self._write_tail()
        if self._log >= 0:
            os.close(self._log)
            self._log = -1

    @property
    def tail(self) -> str:
        """The last few kilobytes of complete lines, redacted. Zero bytes are replaced: few stores take them."""
        return self._redactor.text(self._recent)[-TAIL_CHARS:].replace("\0", "\N{REPLACEMENT CHARACTER}")

    @property
    def last_line(self) -> str:
        lines = (line.strip() for line in reversed(self.tail.splitlines()))
        return next((line for line in lines if line), "")[:SHORT_LINE]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, lines: "_Lines", text: str) -> None:
        at = text.rfind("\n") + 1
        long = len(text) - at > MAX_LINE_CHARS
        if long:
            at = len(text) - OVERLAP
        if at == 0:
            lines.pending = text
        elif self._head > 0 or long:
            front, lines.pending = self._redactor.split(text, at)
            if not front and len(text) > MAX_LINE_CHARS:
                front, lines.pending = self._redactor.text(text), ""  # no secret is that long
            self._keep(front)
        else:
            # Most of this is thrown away again, so it is redacted only when the tail is written.
            lines.pending = text[at:]
            self._keep(text[:at])

    def _keep(self, text: str) -> None:
        self._recent = (self._recent + text)[-RECENT:] if len(text) < RECENT else text[-RECENT:]
        block = text.encode()
        if self._head > 0:
            self._head -= len(block)
            self._write(block)
            return
        self._ring.append(block)
        self._ring_size += len(block)
        while self._ring_size - len(self._ring[0]) >= self._tail_size + LEAD:
            dropped = len(self._ring.popleft())
            self._ring_size -= dropped
            self._left_out += dropped

    def _write_tail(self) -> None:
        kept = self._redactor.text(b"".join(self._ring).decode()).encode()
        self._ring.clear()
        if len(kept) > self._tail_size:
            start = kept.find(b"\n", len(kept) - self._tail_size) + 1 or len(kept) - self._tail_size
            self._left_out += start
            kept = kept[start:]
        if self._left_out:
            self._write(f"[unstuck: {self._left_out / MEGABYTE:.1f} MB of output left out here]\n".encode())
        self._write(kept)

    def _write(self, block: bytes) -> None:
        view = memoryview(block)
        while view and self.error is None:
            try:
                view = view[os.write(self._log, view) :]
            except OSError as error:
                self.error = error


class _Lines:
    """What one stream has printed since its last complete line."""

    def __init__(self) -> None:
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.pending = ""
