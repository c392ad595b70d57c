"""Stored publications of a bucket: immutable runs of rows sorted by the hash of their key, one manifest a batch.

    <state>/state.json                         what the state is of: key, order, columns, how many buckets
    <state>/<query>/asked/<batch>              a batch was asked for; unless it is stored, its result was never read
    <state>/<query>/<bucket>/latest            the highest batch that was stored
    <state>/<query>/<bucket>/<batch>.json      the runs that make up the bucket after that batch, and the subscriptions
    <state>/<query>/<bucket>/<batch>.*.arrow   a run: rows that the batch changed, with what was merged into them
    <state>/<query>/<bucket>/<batch>.*.sorted  a column of a run in order; see `transitions_index`

Manifests have a checksum of themselves, the names of the other files tell theirs, see `tocsin.spark.sealed`.

A batch reads what the batch before it left and writes files of its own number, whole or not at all. So a batch that is
run again finds what it found the first time and leaves what it left the first time: nothing is applied twice.

Runs are kept newest last, each more than twice as large as the next: a new one is merged with its elders until that
holds. Reading k keys asks a few runs, and a row is written again only as often as its run doubles: the cost of a batch
follows its rows, not the publications stored.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.errors import SavedIndexError
from tocsin.spark.manifest import current_version
from tocsin.spark.sealed import body_of, latest_of, note_latest, reading, sealed_text, writing
from tocsin.spark.transitions_files import open_rows, single, write_rows, write_text
from tocsin.spark.transitions_index import Wanted, rows_wanted

FORMAT = 3
KEPT_BATCHES = 100
"""How many batches can be gone back to: as many as Spark keeps in a checkpoint."""

HASH, KEY, EXISTS, ORDER = "#", "key", "!", "@"
"""Columns of a run. A publication's column ``x`` is ``=x``, and ``@x`` says which order it was set by."""

Int64s = npt.NDArray[np.int64]

_ANEW = "start again with a new state and checkpoint"
_RUN = re.compile(r"(\d+)\.[^.]+\.arrow")


class Run(NamedTuple):
    """A file of rows."""

    name: str
    rows: int


@dataclass(frozen=True)
class Stored:
    """A bucket after a batch: its runs, the oldest first, and the subscriptions that it was matched with: the path of
    an index, and the number and identity of a version. ``before`` is the batch that it was made from, -1 for none."""

    batch: int
    subscriptions: tuple[str, int, str]
    runs: tuple[Run, ...] = ()
    before: int = -1

    def to_json(self) -> str:
        """Return the manifest as the text of its file.

        >>> stored = Stored(3, ("index", 1, "a"), (Run("0000000003.arrow", 5),))
        >>> Stored.from_json(stored.to_json(), "here") == stored
        True
        """
        return sealed_text("state", FORMAT, asdict(self))

    @classmethod
    def from_json(cls, text: str, source: str) -> Stored:
        """Return the manifest of a text that `to_json` wrote."""
        body = body_of(text, "state", FORMAT, source, _ANEW)
        runs = tuple(Run(*run) for run in body["runs"])
        path, version, identity = body["subscriptions"]
        return cls(body["batch"], (path, version, identity), runs, body["before"])


class Found(NamedTuple):
    """Stored rows of some keys: tables, and for each key the row in all of them together, -1 where there is none."""

    pieces: list[pa.Table]
    place: Int64s


class Bucket:
    """The files of one bucket of one stream."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def before(self, batch: int) -> Stored | None:
        """Return what the batch before this one left, None if there was none."""
        self._check_asked(batch)
        if self._manifest(batch - 1).exists():
            return self._read(batch - 1)
        last = max((number for number in self._batches(self.folder) if number < batch), default=-1)
        if (needed := self._made_from(batch)) > last:
            raise SavedIndexError(
                f"{self._manifest(needed)}: missing, though that batch was stored; restore it or {_ANEW}"
            )
        siblings = self.folder.parent.iterdir() if self.folder.parent.exists() else ()
        for other in siblings:  # a batch without a row runs nothing; one that ran left a manifest in every bucket
            if any(last < number < batch for number in self._batches(other)):
                raise SavedIndexError(
                    f"{self.folder} lacks a batch that {other} has: a result of transitions was not read to its end "
                    "(limit, show); run that batch again and read it all"
                )
        return None if last < 0 else self._read(last)

    def _made_from(self, batch: int) -> int:
        """Return the batch that this one has to be made from, as far as is recorded: what it was made from when it ran
        before, or the highest that was stored."""
        if self._manifest(batch).exists():
            return self._read(batch).before
        latest = latest_of(self._latest)
        return latest if latest < batch else -1

    def _check_asked(self, batch: int) -> None:
        """Raise SavedIndexError if an earlier batch was asked for and never stored here."""
        folder = self.folder.parent / "asked"
        asked = [int(file.name) for file in folder.iterdir() if file.name.isdigit()] if folder.is_dir() else []
        stored = max(latest_of(self._latest), *self._batches(self.folder), -1) if asked else -1
        lost = min((number for number in asked if stored < number < batch), default=None)
        if lost is not None:
            raise SavedIndexError(
                f"the result of batch {lost} was not read to its end (limit, show), or not at all, so that its updates "
                f"are not stored in {self.folder}; run that batch again and read it all, or remove "
                f"{folder / str(lost)} to go on without them"
            )

    def _read(self, batch: int) -> Stored:
        file = self._manifest(batch)
        return Stored.from_json(_text_of(file), str(file))

    def find(self, stored: Stored | None, hashes: Int64s, keys: pa.Array) -> Found:
        """Return the stored rows of distinct keys; hashes that collide are told apart by the keys."""
        place = np.full(len(hashes), -1, np.int64)
        pieces: list[pa.Table] = []
        taken = 0
        missing = np.argsort(hashes, kind="stable")  # neighbours in a run are asked for together
        for run in reversed(stored.runs if stored else ()):
            if not len(missing):
                break
            table = self.open(run)
            rows = _rows_of(table, hashes[missing], keys.take(pa.array(missing)))
            hit = rows >= 0
            if hit.any():
                pieces.append(table.take(pa.array(rows[hit])))
                place[missing[hit]] = taken + np.arange(np.count_nonzero(hit))
                taken += len(pieces[-1])
                missing = missing[~hit]
        return Found(pieces, place)

    def all_rows(self, stored: Stored | None) -> pa.Table | None:
        """Return the row of every publication that exists, None if nothing is stored."""
        if stored is None or not stored.runs:
            return None
        table = merged([self.open(run) for run in stored.runs])
        return table.filter(table[EXISTS])

    def candidates(self, stored: Stored | None, key: str, wanted: Wanted) -> pa.Table | None:
        """Return the row of every publication that exists and may lie in a box, None if nothing is stored."""
        found: list[pa.Table] = []
        newer: list[pa.Table] = []
        for run in reversed(stored.runs if stored else ()):
            table = self.open(run)
            rows = rows_wanted(self.folder / run.name, table, lambda name: KEY if name == key else f"={name}", wanted)
            some = table if len(rows) == len(table) else table.take(pa.array(rows))
            for other in newer:  # what a newer run says of a key is what counts
                if len(some):
                    past = _rows_of(other, some[HASH].to_numpy(), single(some[KEY])) >= 0
                    some = some.filter(pa.array(~past)) if past.any() else some
            found.append(some.filter(some[EXISTS]))
            newer.append(table)
        return pa.concat_tables([_as(table, found[0].schema) for table in found]) if found else None

    def commit(
        self,
        batch: int,
        before: Stored | None,
        subscriptions: tuple[str, int, str],
        rows: pa.Table | None,
        forget: bool = False,
    ) -> None:
        """Make the rows of changed publications, if any, part of the bucket as the state after a batch.

        ``forget`` says that deleted publications need not be remembered once no older run names them.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        runs = list(before.runs if before else ())
        if rows is not None and len(rows):
            tables = [rows]
            size = len(rows)
            while runs and runs[-1].rows <= 2 * size:
                size += runs[-1].rows
                tables.insert(0, self.open(runs.pop()))
            made = merged(tables) if len(tables) > 1 else _sorted(rows)
            if forget and not runs:
                made = made.filter(made[EXISTS]).combine_chunks()
            if len(made):
                runs.append(Run(write_rows(self.folder, f"{batch:010}", "arrow", made), len(made)))
        stored = Stored(batch, subscriptions, tuple(runs), before.batch if before else -1)
        write_text(self._manifest(batch), stored.to_json())
        if batch > latest_of(self._latest):
            note_latest(self._latest, batch)
        if batch % 10 == 0:
            self._tidy(batch)

    def open(self, run: Run) -> pa.Table:
        """Return the rows of a run, mapped from its file."""
        return open_rows(self.folder / run.name, run.rows)

    @property
    def _latest(self) -> Path:
        return self.folder / "latest"

    def _manifest(self, batch: int) -> Path:
        return self.folder / f"{batch:010}.json"

    @staticmethod
    def _batches(folder: Path) -> list[int]:
        try:
            return [int(file.stem) for file in folder.iterdir() if file.suffix == ".json" and file.stem.isdigit()]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _tidy(self, batch: int) -> None:
        """Remove manifests of batches that are long past, and the runs that only they name."""
        numbers = sorted(self._batches(self.folder))
        kept = [number for number in numbers if number >= batch - KEPT_BATCHES]
        used = {run.name for number in kept for run in self._read(number).runs}
        if len(kept) == len(numbers):
            return
        for number in numbers[: len(numbers) - len(kept)]:
            self._manifest(number).unlink(missing_ok=True)
        for file in self.folder.iterdir():
            run = _RUN.match(file.name)
            past = run is not None and run[0] not in used and int(run[1]) < batch - KEPT_BATCHES
            if past or (file.suffix == ".part" and file.stat().st_mtime < self._manifest(kept[0]).stat().st_mtime):
                file.unlink(missing_ok=True)


def merged(tables: Sequence[pa.Table]) -> pa.Table:
    """Return one row a key of tables given oldest first, sorted by hash: the newest row of each.

    >>> old = pa.table({"#": [1, 5], "key": ["a", "b"], "=x": [10, 20]})
    >>> new = pa.table({"#": [5, 7], "key": ["b", "c"], "=x": [30, 40]})
    >>> merged([old, new]).to_pydict()
    {'#': [1, 5, 7], 'key': ['a', 'b', 'c'], '=x': [10, 30, 40]}
    """
    newest_first = [_as(table, tables[-1].schema) for table in reversed(tables)]
    whole = pa.concat_tables(newest_first).combine_chunks()
    hashes = whole[HASH].to_numpy()
    order = np.argsort(hashes, kind="stable")
    again = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]]) + 1
    if len(again):
        keys = single(whole[KEY])
        before, after = (keys.take(pa.array(order[where])) for where in (again - 1, again))
        chained = np.count_nonzero(np.diff(again) == 1)
        if chained or not pc.all(pc.equal(before, after)).as_py():  # three in a row, or two keys of one hash
            codes = keys.dictionary_encode().indices.to_numpy()
            _, first = np.unique(codes, return_index=True)  # the newest row of each key is its first
            order = first[np.argsort(hashes[first], kind="stable")]
        else:
            order = np.delete(order, again)
    return whole.take(pa.array(order)).combine_chunks()


def _rows_of(table: pa.Table, hashes: Int64s, keys: pa.Array) -> Int64s:
    """Return the row of each key in a run, -1 where it has none; hashes ascend."""
    known = table[HASH].to_numpy()
    first = np.searchsorted(known, hashes, "left")
    row = np.where(first < len(known), first, 0)
    rows = np.where(known[row] == hashes, row, -1)
    hit = np.flatnonzero(rows >= 0)
    column = single(table[KEY])
    same = pc.equal(column.take(pa.array(rows[hit])), keys.take(pa.array(hit))).to_numpy(zero_copy_only=False)
    for each in hit[~same].tolist():  # another key has this hash; rare beyond telling, yet to be right
        wanted, last = keys[each], np.searchsorted(known, hashes[each], "right")
        alike = (row for row in range(int(first[each]), int(last)) if column[row] == wanted)
        rows[each] = next(alike, -1)
    return rows


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.take(pa.array(np.argsort(rows[HASH].to_numpy(), kind="stable"))).combine_chunks()


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table in the types of another: timestamps follow the zone of the session."""
    return table if table.schema.equals(schema) else table.cast(schema)


def settle(path: str, wanted: dict[str, Any], asked: int | None = None) -> dict[str, Any]:
    """Return what a state is of, as recorded when it was first used; record it now if it is new. If it is of what is
    ``wanted``, note that this batch was ``asked`` for."""
    file = Path(path) / "state.json"
    if not os.path.lexists(file):
        if any(Path(path).glob("*/[0-9][0-9][0-9][0-9]/*.json")):
            raise SavedIndexError(f"{file}: missing, though publications are stored beside it; restore it or {_ANEW}")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, sealed_text("state", FORMAT, {"id": uuid.uuid4().hex} | wanted))
    found: dict[str, Any] = body_of(_text_of(file), "state", FORMAT, str(file), _ANEW)
    if asked is not None and all(found.get(name) == value for name, value in wanted.items() if name != "buckets"):
        _note_asked(Path(path) / found["id"] / "asked" / str(asked), asked)
    return found


def _text_of(file: Path) -> str:
    with reading(file):
        return file.read_bytes().decode(errors="replace")  # what is no text is told by the checksum


def _note_asked(file: Path, batch: int) -> None:
    """Note that a batch was asked for: once it has been read to its end, every bucket has stored it."""
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    for other in file.parent.iterdir():
        if other.name.isdigit() and int(other.name) < batch - KEPT_BATCHES:
            other.unlink(missing_ok=True)


def current_of(path: str, content: str) -> tuple[int, bool]:
    """Return the current version of the index beside a state, and whether it was made of a table of this content."""
    version = current_version(path)
    try:
        noted = json.loads((Path(path) / "table.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return version, False
    return version, noted == {"content": content, "version": version}


def note_current(path: str, content: str, version: int) -> None:
    """Note of what content a version of the index beside a state was made."""
    write_text(Path(path) / "table.json", json.dumps({"content": content, "version": version}))
