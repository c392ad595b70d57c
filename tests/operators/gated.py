"""A module that is imported only while no file keeps it waiting, and that starts a thread if it is told to."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

while Path(os.environ.get("TOCSIN_TEST_GATE", "nothing there")).exists():
    time.sleep(0.01)

if os.environ.get("TOCSIN_TEST_THREAD"):
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def above(x: float) -> bool:
    """Never ends for a negative number."""
    while x < 0:
        pass
    return x > 1
