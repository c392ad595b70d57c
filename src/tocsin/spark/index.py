"""Indexes built and changed by Spark: a directory of versions that workers open, see `tocsin.spark.manifest`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from tocsin.errors import MissingColumnError, OptionError, SavedIndexError, SpaceError, SparkError, SubscriptionError
from tocsin.operators.operator import Operator
from tocsin.operators.registry import provide, with_operators
from tocsin.space import Space
from tocsin.spark.changes import UNORDERED, apply_changes
from tocsin.spark.manifest import (
    Manifest,
    Segment,
    check_no_stranger,
    commit_build,
    current_version,
    new_identity,
    read_manifest,
)
from tocsin.spark.names import column_of
from tocsin.spark.options import (
    check_choice,
    check_count,
    check_flag,
    check_indexing,
    check_name,
    check_version,
    operators_of,
)
from tocsin.spark.partition import Tree
from tocsin.spark.quarantine import warn_of_refused
from tocsin.spark.remote import ask, ask_each
from tocsin.spark.schema import (
    check_carried,
    check_frame,
    check_subscriptions,
    session_timezone,
    space_of,
    untested,
)
from tocsin.spark.segments import discard, write_segment
from tocsin.spark.sharding import assigned, write_shards

Bad = Literal["quarantine", "error"]

LEAST_SEGMENT, MOST_SEGMENT = 500_000, 1_000_000
"""Subscriptions a segment, between which the number of cores decides: smaller ones would have every event ask more
segments, larger ones would leave cores idle at the build."""

SAMPLE_ROWS = 4_096
"""Events shown to the index when it is built."""


@dataclass(frozen=True)
class IndexVersion:
    """What `build_index` and `update_index` made: ``refused`` counts all subscriptions in the version's quarantine."""

    path: str
    version: int
    subscriptions: int
    refused: int


def build_index(
    subscriptions: DataFrame,
    path: str,
    *,
    events_sample: DataFrame | None = None,
    space: Space | None = None,
    engine: str = "adaptive",
    bad: Bad = "quarantine",
    overwrite: bool = False,
    shards: int = 1,
    segment_rows: int | None = None,
    operators: Iterable[Operator] = (),
) -> IndexVersion:
    """Index a table of subscriptions (columns ``id`` and ``expression``) in a directory that all workers share.

    ``events_sample`` is a DataFrame of events: its schema says which space they have unless one is given, and some of
    its rows tell the index what to expect. Bad subscriptions go to the index's quarantine, or none is taken
    (``bad="error"``). With ``overwrite``, a path that holds an index gets a new version of it; readers of older ones
    are undisturbed. A directory that holds anything else is refused.

    An index of several ``shards`` is for a table beyond a host's memory: each task of `match` holds one shard, and
    events go only to shards that can match them. Otherwise every worker holds all segments; ``segment_rows`` says how
    many subscriptions each has, by default so many that the build keeps all cores busy. ``operators`` are those that
    subscriptions call, beside the space's own and installed ones; they travel to the workers.
    """
    check_frame("subscriptions", subscriptions, batch=True)
    if events_sample is not None:
        check_frame("events_sample", events_sample)
    check_choice("bad", bad, "quarantine", "error")
    check_flag("overwrite", overwrite)
    check_count("shards", shards)
    if segment_rows is not None:
        check_count("segment_rows", segment_rows)
    check_indexing(space, engine)
    given = operators_of(operators)
    path = local_path(path)
    before = ask(subscriptions.sparkSession, lambda: _version_before(path))
    if before and not overwrite:
        raise SavedIndexError(
            f"{path} holds version {before} of an index; change it with update_index, or pass overwrite=True"
        )
    return _version(
        path,
        build(
            subscriptions,
            path,
            before + 1,
            events_sample,
            space,
            engine,
            bad,
            segment_rows,
            shards,
            given,
            scan=True,
        ),
    )


def build(
    subscriptions: DataFrame,
    path: str,
    version: int,
    events: DataFrame | None,
    space: Space | None,
    engine: str,
    bad: Bad,
    segment_rows: int | None = None,
    shards: int = 1,
    operators: tuple[Operator, ...] = (),
    *,
    scan: bool = False,
) -> Manifest:
    """Build a version of an index whose number is free; return its manifest.

    The events that the index is shown are drawn from all (``scan``), or the first of them.
    """
    id_type = check_subscriptions(subscriptions.schema)
    if space is None and events is None:
        raise SpaceError("build_index needs events_sample=... (a DataFrame of events) or space=... (a tocsin.Space)")
    if events is not None:
        check_carried(events.schema)
    chosen_space = space or space_of(cast(DataFrame, events).schema, session_timezone(cast(DataFrame, events)))
    sample = _sample(events, scan) if events is not None else None
    given = (*chosen_space.operators.values(), *operators)
    provide(given)
    chosen = subscriptions.select("id", "expression").toDF("id", "expression")
    prefix = f"{new_identity()}-"
    try:
        tree, found = _written(chosen, path, chosen_space, engine, sample, segment_rows, shards, given, prefix)
        refused = sum(each["refused"] for each in found)
        reasons = [reason for each in found for reason in each["reasons"]][:5]
        left_out = untested(events.schema) if space is None and events is not None else ""
        note = f"\ncolumns of the events that {left_out}" if left_out else ""
        if refused and bad == "error":
            shown = "\n".join(reasons)
            raise SubscriptionError(f"{refused} of the subscriptions are bad; no index was built\n{shown}{note}")
        manifest = Manifest(
            version=version,
            space=chosen_space.to_json(),
            inferred=space is None,
            id_type=id_type.jsonValue(),
            engine=engine,
            segments=tuple(Segment(**each["segment"]) for each in found if each["segment"]),
            tested=tuple(sorted({name for each in found for name in each["tested"]})),
            operands=tuple(sorted({name for each in found for name in each["operands"]})),
            quarantine=tuple(each["quarantine"] for each in found if each["quarantine"]),
            refused=refused,
            shards=shards,
            tree=tree,
        )
        text = manifest.to_json()
        committed = ask(chosen.sparkSession, lambda: commit_build(path, Manifest.from_json(text)).to_json())
    except Exception:
        # Whatever went wrong, what tasks have written is of no use and takes room that the next try may need.
        with suppress(Exception):
            ask(chosen.sparkSession, lambda: discard(path, prefix, version == 1))
        raise
    if refused:
        warn_of_refused(refused, manifest.subscriptions, reasons, f"{path}/quarantine", note)
    return Manifest.from_json(committed)


def _written(
    chosen: DataFrame,
    path: str,
    space: Space,
    engine: str,
    sample: bytes | None,
    segment_rows: int | None,
    shards: int,
    given: tuple[Operator, ...],
    prefix: str,
) -> tuple[Tree | None, list[Any]]:
    """Write the segments of a table of subscriptions; return what assigns subscriptions to shards, and what was
    written."""
    if shards > 1:
        tree, rows = assigned(chosen, space, sample, shards)
        answers = ask_each(
            rows, lambda table: with_operators(given, write_shards, path, table, space, engine, sample, prefix)
        )
        return tree, [each for some in answers for each in some]
    count = _segments(chosen, segment_rows)
    # By id, so that two rows of one id meet in the same segment, which refuses the second.
    spread = chosen.repartition(count, "id") if count > 1 else chosen.repartition(1)

    def write(table: pa.Table) -> Any:
        return with_operators(given, write_segment, path, table, space, engine, sample, None, prefix).to_json()

    return None, ask_each(spread, write)


def update_index(
    changes: DataFrame,
    path: str,
    *,
    bad: Bad = "quarantine",
    order: str | None = None,
    source: str | None = None,
    batch: int | None = None,
    operators: Iterable[Operator] = (),
) -> IndexVersion:
    """Apply a table of changes (columns ``id`` and ``expression``) to an index, as a new version of it.

    A row with an expression subscribes, or replaces the subscription of that id; a row whose expression is NULL
    unsubscribes. Several rows of one id are refused, unless ``order`` names the column by which the last one counts; of
    two rows of one id and order, the one that subscribes counts. A bad expression leaves what was there before. Changes
    of a ``source`` with a ``batch`` number are applied once: a batch not above the last one applied changes nothing.
    Older versions stay as they are.
    """
    check_choice("bad", bad, "quarantine", "error")
    check_frame("changes", changes, batch=True)
    _check_source(source, batch)
    if order is not None:
        check_name("order", order)
    given = operators_of(operators)
    path, session = local_path(path), changes.sparkSession
    id_type = check_subscriptions(changes.schema).jsonValue()
    manifest = read_index(session, path)
    if id_type != manifest.id_type:
        raise SubscriptionError(
            f"the ids of the changes are {id_type}, those of {path} are {manifest.id_type}; cast them"
        )
    if source is not None and batch is not None and batch <= manifest.applied.get(source, -1):
        return _version(path, manifest)
    text, applied = manifest.to_json(), {source: batch} if source is not None and batch is not None else {}
    rows = _last_changes(changes, order).repartition(1)
    found = ask_each(
        rows,
        lambda table: with_operators(
            given, apply_changes, path, Manifest.from_json(text), table, bad == "error", applied
        ),
    )
    if not found:
        return _version(path, manifest)
    (answer,) = found
    if answer["refused"]:
        warn_of_refused(answer["refused"], answer["added"], answer["reasons"], f"{path}/quarantine")
    return _version(path, Manifest.from_json(answer["manifest"]))


def _check_source(source: str | None, batch: int | None) -> None:
    """Raise SparkError unless a source of changes and the number of a batch come together."""
    if (source is None) != (batch is None):
        raise SparkError("source and batch go together: without both, changes that come again are applied again")
    if source is not None:
        check_name("source", source, "the name of where changes come from")
        check_count("batch", batch, 0)


def _last_changes(changes: DataFrame, order: str | None) -> DataFrame:
    """Return ids and expressions; with an order, the last of each id, and whether its order is missing.

    Rows of one id and order remain several, and are refused later, but for those that say the same, and one that
    unsubscribes beside one that subscribes: so a change feed tells that a row was taken away and written anew.
    """
    if order is None:
        return changes.select("id", "expression").toDF("id", "expression")
    if order.lower() not in (name.lower() for name in changes.columns):
        raise MissingColumnError(f"the changes have no column {order}; there is {', '.join(sorted(changes.columns))}")
    by = column_of(order)
    last = Window.partitionBy("id").orderBy(by.desc_nulls_first(), F.col("expression").isNull())
    rows = changes.select("id", "expression", by.isNull(), F.rank().over(last))
    named = rows.toDF("id", "expression", UNORDERED, "rank")
    return named.where("rank = 1").drop("rank").distinct()


def read_index(session: SparkSession, path: str, version: int | None = None) -> Manifest:
    """Return a version of the index at a path; the current one unless a number is given."""
    check_version(version)
    return Manifest.from_json(ask(session, lambda: read_manifest(path, version).to_json()))


def local_path(path: Any) -> str:
    """Return a path as workers open it: absolute, without the scheme ``file:``.

    >>> local_path("file:/data/index"), local_path("/data/index/")
    ('/data/index', '/data/index')
    """
    if not isinstance(path, (str, Path)):
        raise SparkError(f"a path is expected, or a DataFrame where it is of subscriptions, not {type(path).__name__}")
    text = str(path)
    if not text:
        raise OptionError("a path is expected, not an empty text")
    scheme, found, rest = text.partition(":")
    if found and "/" not in scheme and len(scheme) > 1:
        if scheme != "file":
            raise SavedIndexError(
                f"{text}: workers open an index through the file system; mount the store and give the path of the mount"
            )
        text = "/" + rest.lstrip("/")
    return str(Path(text).absolute())


def _sample(events: DataFrame, scan: bool) -> bytes | None:
    """Return some events as an Arrow stream; none of a stream, which has not begun."""
    if events.isStreaming:
        return None
    table = (events.orderBy(F.rand(1)) if scan else events).limit(SAMPLE_ROWS).toArrow()
    if not len(table):
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _segments(chosen: DataFrame, segment_rows: int | None) -> int:
    """Return into how many segments a table goes: as many as there are cores, if that makes them neither small nor
    large."""
    rows = int(chosen.count())
    if segment_rows is not None:
        return -(-rows // segment_rows)
    most = -(-rows // LEAST_SEGMENT)
    return max(min(most, cores_of(chosen.sparkSession) if most > 1 else 1), -(-rows // MOST_SEGMENT))


def cores_of(session: SparkSession) -> int:
    """Return how many tasks run at once: what Spark makes of a range that says nothing of partitions."""
    return int(session.range(1 << 16).select(F.spark_partition_id()).distinct().count())


def _version_before(path: str) -> int:
    """Return the version that an index to be built would follow, 0 if it is the first; raise if it cannot be there."""
    found = current_version(path)
    if not found:
        check_no_stranger(path)
    return found


def _version(path: str, manifest: Manifest) -> IndexVersion:
    return IndexVersion(path, manifest.version, manifest.subscriptions, manifest.refused)


def check_no_version(version: int | None) -> None:
    """Raise if a version is asked for where subscriptions are a DataFrame, which is indexed now and has only one."""
    if version is not None:
        raise SparkError(
            f"version={version!r} is of an index at a path; subscriptions given as a DataFrame have no versions"
        )
