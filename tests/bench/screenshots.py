"""Make README's screenshots from a run that was really measured.

    python tests/bench/screenshots.py STORE RUN [--to assets/screenshots]

Opens the app on STORE without a terminal, goes to each screen by its keys, and saves it as SVG. Give STORE
as a relative path: the title line shows it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "ui"))

from ui_fakes import screen_text, until

from tuneassist.ui.adapters import local_services
from tuneassist.ui.app import TuneAssistApp
from tuneassist.ui.screens.live import LiveScreen

SIZE = (120, 36)


async def make(store: Path, run_id: int, folder: Path) -> None:
    """Save new-run, live, program and history as SVG."""
    app = TuneAssistApp(local_services(store))
    async with app.run_test(size=SIZE, notifications=True) as pilot:

        async def save(name: str) -> None:
            await pilot.pause(1.0)
            lines = app.export_screenshot(title="tuneassist").splitlines()
            text = "\n".join(line.rstrip() for line in lines) + "\n"
            (folder / f"{name}.svg").write_text(text, encoding="utf-8")

        await until(pilot, lambda: "Recent runs" in screen_text(app))
        await pilot.press("n")
        await until(pilot, lambda: "cores allowed" in screen_text(app) and "resnet18" in screen_text(app))
        await save("new-run")
        await pilot.press("escape", "h")
        await until(pilot, lambda: "tuneassist · history" in screen_text(app))
        await save("history")
        await pilot.press("escape")
        app.open_run(run_id)
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and app.screen.snapshot.state.ended)
        await pilot.pause(2.0)
        await save("live")
        await pilot.press("a")
        await until(pilot, lambda: "Script" in screen_text(app) and "loop" in screen_text(app), secs=120)
        await pilot.press(*["down"] * 3)
        await save("program")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make README's screenshots from a measured run.")
    parser.add_argument("store", type=Path)
    parser.add_argument("run", type=int)
    parser.add_argument("--to", type=Path, default=Path(__file__).parents[2] / "assets" / "screenshots")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    asyncio.run(make(given.store, given.run, given.to))


if __name__ == "__main__":
    main()
