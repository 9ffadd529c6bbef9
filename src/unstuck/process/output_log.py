"""Write the output of a process to a log file, redacted and limited to 50 MB."""

import codecs
import os
from collections import deque
from pathlib import Path
from typing import Self

from unstuck.redaction.redactor import Redactor

MEGABYTE = 1_000_000
HEAD_BYTES = 40 * MEGABYTE
"""The first part of the output goes to the disk at once."""
TAIL_BYTES = 8 * MEGABYTE
"""The last part of the rest stays in memory and is written when the process has ended."""
LEAD_BYTES = 128 * 1024
"""Kept before the tail and cut away after redaction, so that a secret which begins in it is redacted."""
MAX_LINE_CHARS = 64 * 1024
OVERLAP_CHARS = 8 * 1024
"""Kept back when a longer line is cut, so that a secret at the cut is redacted whole."""
RECENT_CHARS = 32 * 1024
TAIL_CHARS = 8 * 1024
MAX_LAST_LINE_CHARS = 500


class OutputLog:
    """The output of one session. Streams are separate until a line is complete, and memory is limited."""

    def __init__(
        self,
        log: Path,
        redactor: Redactor,
        *,
        transcript: Path | None = None,
        head: int = HEAD_BYTES,
        tail: int = TAIL_BYTES,
    ) -> None:
        self._transcripts: dict[str, OutputLog] = {}
        """An additional log for each stream, if a transcript is wanted."""
        if transcript is not None:
            error_transcript = transcript.with_name(f"{transcript.name}.err")
            self._transcripts = {
                "stdout": OutputLog(transcript, redactor),
                "stderr": OutputLog(error_transcript, redactor),
            }
        self.size = 0
        """Bytes received, kept or not."""
        self.error: OSError | None = None
        """The reason for an incomplete log. After a failed write, the rest is only counted."""
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
        """Add output of one stream. Complete lines are written at once."""
        self.size += len(chunk)
        if stream in self._transcripts:
            self._transcripts[stream].feed(chunk)
        lines = self._streams.setdefault(stream, _Lines())
        self._add_text(lines, lines.pending + lines.decoder.decode(chunk))

    def close(self) -> None:
        """Write the unfinished lines and the tail of a very long log."""
        for log in self._transcripts.values():
            log.close()
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
        """The last few kilobytes of complete lines, redacted. Zero bytes are replaced, since few stores accept them."""
        return self._redactor.text(self._recent)[-TAIL_CHARS:].replace("\0", "\N{REPLACEMENT CHARACTER}")

    @property
    def last_line(self) -> str:
        lines = (line.strip() for line in reversed(self.tail.splitlines()))
        return next((line for line in lines if line), "")[:MAX_LAST_LINE_CHARS]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add_text(self, lines: "_Lines", text: str) -> None:
        at = text.rfind("\n") + 1
        is_long = len(text) - at > MAX_LINE_CHARS
        if is_long:
            at = len(text) - OVERLAP_CHARS
        if at == 0:
            lines.pending = text
        elif self._head > 0 or is_long:
            front, lines.pending = self._redactor.split(text, at)
            if not front and len(text) > MAX_LINE_CHARS:
                front, lines.pending = self._redactor.text(text), ""  # no secret is that long
            self._keep(front)
        else:
            # Most of this is thrown away later, so it is redacted only when the tail is written.
            lines.pending = text[at:]
            self._keep(text[:at])

    def _keep(self, text: str) -> None:
        self._recent = (self._recent + text)[-RECENT_CHARS:] if len(text) < RECENT_CHARS else text[-RECENT_CHARS:]
        block = text.encode()
        if self._head > 0:
            self._head -= len(block)
            self._write(block)
            return
        self._ring.append(block)
        self._ring_size += len(block)
        while self._ring_size - len(self._ring[0]) >= self._tail_size + LEAD_BYTES:
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
    """The output of one stream after its last complete line."""

    def __init__(self) -> None:
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.pending = ""
