"""Progress on long work: a bar on standard error when that is a terminal, and nothing at all when it is
not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show how far `what` has come; call the result with the number of rows just done.

    >>> with progress("matching", 10) as advance:
    ...     advance(10)
    """
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda rows: bar.advance(task, rows)
