"""Which saved builds this user has verified on this host: of many processes that open one, only the first reads it all.

A *stamp* is a small file in a private folder of the user's, named for the build, the host and every file of the build
as the file system describes it (device, inode, size, times of change). A file that is replaced or written to gives
another name, so that the build is verified again. Damage that a disk does to a file later, without the file system's
knowledge, is not noticed before the stamp is gone: whoever fears that opens with ``verify=True``.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tocsin.index.array_files import locked

MOST_STAMPS = 4_096
"""So many stamps are kept; beyond that the older half is removed, and those builds are verified again."""


@contextmanager
def verify_once(build: str, files: Iterable[Path]) -> Iterator[bool]:
    """Yield whether the files of a build are still to be verified; if the block does that and ends well, they are not
    again. Other processes that come meanwhile wait for the outcome.

    >>> with tempfile.NamedTemporaryFile() as some:
    ...     with verify_once("example", [Path(some.name)]) as first:
    ...         pass
    ...     with verify_once("example", [Path(some.name)]) as second:
    ...         pass
    >>> second
    False
    """
    stamp = _stamp_of(build, files)
    if stamp is None:
        yield True
        return
    if _is_set(stamp):
        yield False
        return
    with locked(stamp):
        needed = not _is_set(stamp)
        yield needed
        if needed:
            with suppress(OSError):
                stamp.write_text("verified\n")
                _prune(stamp.parent)


def _stamp_of(build: str, files: Iterable[Path]) -> Path | None:
    """Return the stamp of a build, which is there but maybe empty; None where there is no private place for it."""
    described = [platform.node(), build]
    try:
        for file in sorted(files):
            found = file.stat()
            described.append(
                f"{file.name} {found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
            )
    except OSError:
        return None  # whoever opens the file says what is wrong with it
    folder = _private_folder()
    if folder is None:
        return None
    stamp = folder / hashlib.sha256("\n".join(described).encode()).hexdigest()
    try:
        stamp.touch(0o600)
    except OSError:
        return None
    return stamp


def _is_set(stamp: Path) -> bool:
    try:
        return stamp.stat().st_size > 0
    except OSError:
        return False


def _private_folder() -> Path | None:
    """Return a folder that only this user can write to, made if need be: in the user's cache, else among temporary
    files."""
    if not hasattr(os, "getuid"):
        return None
    candidates = [Path(tempfile.gettempdir()) / f"tocsin-verified-{os.getuid()}"]
    with suppress(RuntimeError):
        cache = os.environ.get("XDG_CACHE_HOME")
        candidates.insert(0, (Path(cache) if cache else Path.home() / ".cache") / "tocsin" / "verified")
    for folder in candidates:
        with suppress(OSError):
            folder.mkdir(0o700, parents=True, exist_ok=True)
            found = folder.lstat()
            private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
            if private and os.access(folder, os.W_OK):
                return folder
    return None


def _prune(folder: Path) -> None:
    stamps = list(folder.iterdir())
    if len(stamps) > MOST_STAMPS:
        stamps.sort(key=lambda stamp: stamp.stat().st_mtime)
        for stamp in stamps[: len(stamps) // 2]:
            stamp.unlink(missing_ok=True)
