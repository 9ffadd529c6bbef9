"""The bundle in the package is what its sources say."""

import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES, BUNDLE = ROOT / "web" / "ui", ROOT / "src" / "unstuck" / "catalog" / "ui"


def test_the_bundle_bears_the_mark_of_its_sources() -> None:
    """Make it anew with: make ui."""
    mark = sha256()
    for name in sorted(["package.json", "build.mjs", *(f"src/{path.name}" for path in (SOURCES / "src").iterdir())]):
        mark.update(f"{name}\0".encode() + (SOURCES / name).read_bytes() + b"\0")
    for name in ("ui.js", "ui.css"):
        found = re.search(r"sources:([0-9a-f]{64}) \*/", (BUNDLE / name).read_text(encoding="utf-8"))
        assert found is not None
        assert found[1] == mark.hexdigest(), name


def test_the_bundle_is_what_its_sources_build(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not (SOURCES / "node_modules" / "esbuild").is_dir():
        pytest.skip("what builds the page is not installed (make ui)")
    done = subprocess.run(
        ["node", "build.mjs", str(tmp_path)], cwd=SOURCES, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [
        name for name in ("ui.js", "ui.css") if (tmp_path / name).read_bytes() != (BUNDLE / name).read_bytes()
    ] == []


def test_the_bundle_is_small_and_asks_nobody_for_anything() -> None:
    text = (BUNDLE / "ui.js").read_text(encoding="utf-8")
    assert len(text) < 150_000
    assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"}, "names of SVG and XHTML"
    assert not re.search(r"\beval\(|new Function\(|\.insertAdjacentHTML|document\.write", text)
