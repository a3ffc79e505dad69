"""Progress bars with an estimate, and lines where there is no terminal, on the error stream."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from suffice.live.batches.batch import Spent
    from suffice.training.learner import Watched

PATIENCE_SECONDS = 1.0
SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def progress_bar(title: str, total: float | None, cluster: Any = None) -> Iterator[Callable[..., None]]:
    """Give a function that is told of each step's size, and maybe of another title; a terminal shows it after a second.

    Of work without a total it shows that time passes, and of work on a cluster how that stands.
    """
    far = (TimeElapsedColumn(),) if total is None else (TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(TextColumn("{task.description}"), BarColumn(), *far, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=total)

    def advance(steps: float, now: str = title) -> None:
        bar.update(task, advance=steps, description=_described(now, cluster))

    if not bar.console.is_terminal:
        yield advance
        return
    timer = threading.Timer(PATIENCE_SECONDS, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield advance
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()


waiting = partial(progress_bar, total=None)
"""The same for work that can't tell how far it is."""


@contextmanager
def training_bar(runs: int, steps: int, cluster: Any = None) -> Iterator[Callable[[int, "Watched"], None]]:
    """Give a function that is told how each training run stands."""
    done = [0] * runs
    with progress_bar("training", max(runs * steps, 1), cluster) as advance:

        def watch(run: int, now: "Watched") -> None:
            before, done[run] = done[run], min(now.steps, steps)
            stands = f"reward {now.reward:.3f}, {now.samples:.1f} samples in {now.rounds:.1f} rounds"
            advance(done[run] - before, f"run {run + 1} of {runs}: {stands}")

        yield watch


@contextmanager
def batch_bar(title: str, total: int, unit: str, spent: "Spent", cluster: Any = None) -> Iterator[Callable[..., None]]:
    """Give a function that is told of each step; the bar shows how many are done, tokens a second and the cost.

    Where there is no terminal, a line now and then says the same.
    """
    console = Console(stderr=True)
    begun: tuple[float, int] | None = None
    done, last_line = 0, -inf
    with progress_bar(title, total) as advance:

        def step(steps: int) -> None:
            nonlocal begun, done, last_line
            now = time.monotonic()
            done += steps
            if begun is None:  # what earlier runs had done is no measure of speed
                begun, told = (now, spent.tokens), f"{title} is under way"
            else:
                speed = (spent.tokens - begun[1]) / max(now - begun[0], 1e-9)
                cost = f", {spent.cost:.2f} spent" if spent.cost else ""
                told = _described(f"{title}: {speed:,.0f} tokens/s{cost}", cluster)
            told = f"{told}; {done:,} of {total:,} {unit} done"
            advance(steps, told)
            if not console.is_terminal and now - last_line >= SECONDS_BETWEEN_LINES:
                last_line = now
                print(told, file=sys.stderr, flush=True)

        yield step


def _described(title: str, cluster: Any) -> str:
    return f"{title} ({cluster.standing})" if cluster and cluster.standing else title
