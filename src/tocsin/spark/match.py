"""`match`: a DataFrame of events and a table of subscriptions in, the pairs out; batch or streaming."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, types
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from tocsin.errors import SparkError
from tocsin.matcher.matcher import Missing
from tocsin.operators.operator import Operator
from tocsin.space import Space
from tocsin.space.names import column_key
from tocsin.spark.index import Bad, build, check_no_version, local_path, read_index
from tocsin.spark.manifest import Manifest
from tocsin.spark.names import column_of, known_schema, map_in_arrow, with_schema
from tocsin.spark.options import check_choice, check_indexing, check_name, check_quarantine, check_version, operators_of
from tocsin.spark.quarantine import Quarantine, counted, is_refused, manifest_id_type, refused_subscriptions
from tocsin.spark.schema import arrow_type, check_carried, check_events, check_frame, check_output
from tocsin.spark.sharding import PART, Routing, ShardMatching, ShardsInTurn, routed
from tocsin.spark.workers import REASON, Matching, Version

Output = Literal["pairs", "array"]


def match(
    events: DataFrame,
    subscriptions: DataFrame | str | Path,
    *,
    space: Space | None = None,
    output: Output = "pairs",
    column: str = "subscription",
    missing: Missing = "error",
    bad: Bad = "quarantine",
    quarantine: Quarantine | None = None,
    version: int | None = None,
    engine: str = "adaptive",
    scratch: str | Path | None = None,
    operators: Iterable[Operator] = (),
    records: str | Path | None = None,
) -> DataFrame:
    """Return the events' columns and, in ``subscription``, the id of each subscription that an event satisfies.

    ``events`` is a batch or streaming DataFrame. ``subscriptions`` is the path of an index that `build_index` made, or
    a DataFrame with columns ``id`` and ``expression``: that is indexed now, in ``scratch``, a directory that all
    workers share (in local mode a temporary one). With ``output="array"`` there is one row an event, with the array
    of ids.

    The space is that of the events' schema unless given. A bad event is not matched but counted, and found in the
    ``quarantine`` with the reason; a bad subscription is left out with a warning, or raises (``bad="error"``).

    A batch uses the version of the index that is current now (or ``version``). Each batch of a stream uses the version
    that is current when it begins, and the same one when it is replayed. Which one is recorded in the index; or in
    ``records``, a directory of the caller's that workers can write, where the index is read-only.

    ``operators`` are those that subscriptions call, beside the space's own and installed ones. They travel to the
    workers, run there over batches, and their resources are loaded once a worker.
    """
    check_choice("output", output, "pairs", "array")
    given = check_asked(missing, bad, column, version, space, engine, quarantine, operators)
    kept = local_path(records) if records is not None else None
    check_frame("events", events)
    if not isinstance(subscriptions, str | Path):
        check_frame("subscriptions (or the path of an index)", subscriptions, batch=True)
    session, schema = events.sparkSession, events.schema
    check_output(schema, column, [REASON, PART])
    check_carried(schema)
    if isinstance(subscriptions, DataFrame):
        check_no_version(version)
        path = local_path(scratch) if scratch is not None else temporary(events)
        path = f"{path}/{uuid.uuid4().hex}"
        manifest = build(subscriptions, path, 1, events, space, engine, bad, operators=given)
    else:
        path = local_path(subscriptions)
        if space is not None:
            raise SparkError("an index has its own space; give space=... to build_index")
        manifest = read_index(session, path, version)
    known = known_schema(events, manifest.read_space(), manifest.operands)
    check_events(known, manifest, missing != "error")
    id_type = manifest_id_type(manifest)
    matching = Matching(
        version=Version(
            path,
            manifest.build,
            None if events.isStreaming and version is None else manifest.pin,
            manifest.id_type,
            given,
            uuid.uuid4().hex if given else "",
            kept,
        ),
        id_arrow=arrow_type(id_type),
        column=column,
        as_array=output == "array",
        missing=missing,
    )
    outgoing = _output_schema(known, column, id_type, output)
    found = _matched(with_schema(events, known), matching, manifest.shards, outgoing)
    return _split(with_schema(found, schema), schema, column, quarantine, path, manifest)


def check_asked(
    missing: str,
    bad: str,
    column: str,
    version: int | None,
    space: Space | None,
    engine: str,
    quarantine: Quarantine | None,
    operators: Iterable[Operator],
) -> tuple[Operator, ...]:
    """Raise OptionError for what `match` and `transitions` cannot be asked; return the operators, the space's too."""
    check_choice("missing", missing, "error", "unspecified")
    check_choice("bad", bad, "quarantine", "error")
    check_name("column", column, "the name of the column that holds the ids of subscriptions")
    check_version(version)
    check_indexing(space, engine)
    check_quarantine(quarantine)
    return (*(space.operators.values() if space is not None else ()), *operators_of(operators))


def _matched(events: DataFrame, matching: Matching, shards: int, schema: types.StructType) -> DataFrame:
    """Return matches and refused events: in the events' partitions, or in those of the shards that they go to."""
    if shards == 1:
        return map_in_arrow(events, matching, schema)
    strict = any(operator.on_failure == "error" for operator in matching.version.operators)
    if matching.as_array or strict:  # a failed call in one shard refuses the event in all
        return map_in_arrow(events, ShardsInTurn(matching), schema)
    spread = max(1, int(events.sparkSession.conf.get("spark.sql.shuffle.partitions", "1") or 1) // shards)
    routing = Routing(matching.version, spread, matching.missing)
    return map_in_arrow(routed(events, routing, shards), ShardMatching(matching, spread), schema)


def _split(
    found: DataFrame,
    schema: types.StructType,
    column: str,
    quarantine: Quarantine | None,
    path: str,
    manifest: Manifest,
) -> DataFrame:
    """Return the matches of a result that holds refused events too; the quarantine gets those."""
    reason = F.col(REASON)
    counts = counted(reason, F.when(reason.isNull(), F.lit(1)), "matches")
    if quarantine is not None:
        told = reason.alias(reason_name(schema.names))
        refused = found.where(is_refused(reason)).select(*map(column_of, schema.names), told)
        counting = None if found.isStreaming else found.agg(*counts)
        quarantine._fill(refused, refused_subscriptions(found.sparkSession, path, manifest), counting)
    if found.isStreaming:
        found = found.observe(f"tocsin_{uuid.uuid4().hex[:8]}", *counts)
    return found.where(reason.isNull()).drop(REASON)


def _output_schema(schema: types.StructType, column: str, id_type: types.DataType, output: Output) -> types.StructType:
    added = types.ArrayType(id_type, False) if output == "array" else id_type
    fields = [
        *schema.fields,
        types.StructField(column, added),
        types.StructField(REASON, types.StringType()),
    ]
    return types.StructType(fields)


def reason_name(columns: list[str]) -> str:
    """Return ``reason``, or a longer name where events have such a column.

    >>> reason_name(["price", "reason"])
    'reason_of_refusal'
    """
    name = "reason"
    while column_key(name) in map(column_key, columns):
        name += "_of_refusal"
    return name


def temporary(events: DataFrame) -> str:
    """Return a directory for an index that lives as long as this process; local mode only."""
    master = str(events.sparkSession.conf.get("spark.master", ""))
    if not master.startswith("local"):
        raise SparkError(
            f"the workers of {master or 'this cluster'} share no temporary directory; pass scratch='...', a directory "
            "that all of them see, or build an index there with build_index and pass its path"
        )
    folder = tempfile.mkdtemp(prefix="tocsin-")
    atexit.register(partial(shutil.rmtree, folder, ignore_errors=True))
    return folder
