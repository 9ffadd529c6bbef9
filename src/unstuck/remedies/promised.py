"""Whether a file holds what its name promises: a page about an error is no archive and no JSON. Pure."""

import json

MOST_LOOKED_AT = 5_000_000
MAGIC = {
    "gz": b"\x1f\x8b", "tgz": b"\x1f\x8b", "zip": b"PK", "whl": b"PK", "jar": b"PK", "docx": b"PK", "xlsx": b"PK", "xz": b"\xfd7zXZ",
    "bz2": b"BZh", "zst": b"\x28\xb5\x2f\xfd", "7z": b"7z\xbc\xaf", "png": b"\x89PNG", "gif": b"GIF8", "jpg": b"\xff\xd8", "jpeg": b"\xff\xd8",
    "pdf": b"%PDF", "deb": b"!<arch>", "rpm": b"\xed\xab\xee\xdb", "wasm": b"\x00asm", "sqlite": b"SQLite format 3",
}  # fmt: skip
"""Ending → how such a file begins."""
PAGES = frozenset({"html", "htm", "xhtml", "php", "asp", "aspx", "jsp"})
WEB_PAGE = (b"<!doctype html", b"<html")


def unsound(name: str, content: bytes) -> str:
    """Say what is wrong with a file of this name; empty if nothing is known to be."""
    base = name.rpartition("/")[2].lower()
    ending = base.rpartition(".")[2] if "." in base else ""
    if ending in MAGIC:
        return "" if content.startswith(MAGIC[ending]) else f"is no {ending} file"
    if ending not in {*PAGES, ""} and content[:200].lstrip().lower().startswith(WEB_PAGE):
        return "is a web page"
    if ending == "json" and len(content) < MOST_LOOKED_AT:
        try:
            json.loads(content)
        except (ValueError, RecursionError):
            return "is no JSON"
    return ""
