"""Make the pictures of the board in docs/: the showcase, served and looked at with Debian's Chromium.

make screenshots            a scratch repository, one run in it, then the pictures
python scripts/screenshots.py --of DIR    of a repository that has a run
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
WIDE, PHONE = (1280, 860), (390, 844)
SHOTS = (
    ("morning-light", "#/morning", "light", WIDE),
    ("morning-dark", "#/morning", "dark", WIDE),
    ("morning-phone", "#/morning", "light", PHONE),
    ("story-light", "#/task/1.2", "light", WIDE),
    ("story-dark", "#/task/2.1", "dark", WIDE),
    ("story-phone", "#/task/2.4", "dark", PHONE),
    ("plan-light", "#/plan", "light", WIDE),
    ("plan-dark", "#/plan", "dark", WIDE),
    ("plan-phone", "#/plan", "light", PHONE),
    ("timeline-light", "#/timeline", "light", WIDE),
    ("cost-light", "#/cost", "light", WIDE),
    ("experience-light", "#/experience", "light", WIDE),
)


def shoot(address: str, folder: Path, only: str) -> None:
    """Open the board as a person does, and take every picture."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        for name, place, theme, size in SHOTS:
            if only in name:
                _shot(browser, address, folder / f"{name}.png", place, theme, size)
        browser.close()


def _shot(browser: Browser, address: str, path: Path, place: str, theme: str, size: tuple[int, int]) -> None:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if theme == "dark" else "light",
        device_scale_factor=1 if size == WIDE else 1.5,
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("h1")
    page.goto(f"{address.partition('?')[0]}{place}")
    page.wait_for_selector(".column")
    page.wait_for_timeout(600)
    if path.stem.startswith("story"):
        page.get_by_role("button", name="Changes").first.click()
        page.locator(".diff").first.wait_for()
        page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=path)
    context.close()
    for tool in (
        ("pngquant", "--force", "--skip-if-larger", "--output", str(path), str(path)),
        ("optipng", "-quiet", str(path)),
    ):
        if shutil.which(tool[0]):
            subprocess.run(tool, check=False)


@contextmanager
def served(root: Path) -> Iterator[str]:
    """Serve a repository's runs; yield the address with its key."""
    with subprocess.Popen(
        [sys.executable, "-m", "unstuck", "ui", "--port", "0"], cwd=root, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line
        try:
            yield found[0]
        finally:
            process.terminate()


def main() -> None:
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--of", type=Path, help="a repository that has a run")
    wanted.add_argument("--to", type=Path, default=PICTURES)
    wanted.add_argument("--only", default="", help="part of a picture's name")
    asked = wanted.parse_args()
    with tempfile.TemporaryDirectory(prefix="unstuck-shop-") as scratch:
        if asked.of is None:
            subprocess.run(
                [sys.executable, str(ROOT / "scripts" / "showcase.py"), f"{scratch}/shop"],
                env=os.environ | {"XDG_STATE_HOME": f"{scratch}/state"},
                check=True,
            )
        with served(asked.of or Path(scratch, "shop")) as address:
            shoot(address, asked.to, asked.only)


if __name__ == "__main__":
    main()
