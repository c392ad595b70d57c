"""`transitions`: updates of publications and a table of subscriptions in, who entered and who left out; batch or
streaming."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

from tocsin.errors import MissingColumnError, SparkError
from tocsin.matcher.matcher import Missing
from tocsin.operators.operator import Operator
from tocsin.space import Space
from tocsin.space.space import nearest_of
from tocsin.spark.index import Bad, build, check_no_version, local_path, read_index
from tocsin.spark.manifest import Manifest
from tocsin.spark.match import check_asked, reason_name, temporary
from tocsin.spark.names import column_of, known_schema, map_in_arrow, plain
from tocsin.spark.options import check_count, check_flag, check_name
from tocsin.spark.quarantine import Quarantine, counted, is_refused, manifest_id_type, refused_subscriptions
from tocsin.spark.remote import ask
from tocsin.spark.schema import arrow_type, as_points, check_events, check_output, paths_of
from tocsin.spark.transitions_input import BUCKET, HASH, TIE, Reading
from tocsin.spark.transitions_state import current_of, note_current, settle
from tocsin.spark.transitions_worker import BATCH, IGNORED, TRANSITION, Stepping
from tocsin.spark.workers import REASON

BUCKETS = 8
"""Buckets of a state unless said otherwise: a batch runs one task a bucket."""

BUCKETS_A_PARTITION = 4
"""Transitions of so many buckets are put into one partition of the result."""

_ORDERS = (types.IntegralType, types.TimestampType, types.TimestampNTZType, types.DateType)
_KEYS = (types.StringType, types.IntegralType, types.DateType, types.DecimalType)


def transitions(
    updates: DataFrame,
    subscriptions: DataFrame | str | Path,
    *,
    key: str,
    order: str | None = None,
    deleted: str | None = None,
    partial: bool = False,
    clear: str | None = None,
    state: str | Path | None = None,
    batch: int | None = None,
    buckets: int | None = None,
    space: Space | None = None,
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
    """Return a row for each publication and subscription that begin (``enter``) or cease (``leave``) to match.

    A publication is what the rows of one ``key`` have made of it. ``updates`` is a batch or streaming DataFrame; each
    row is an update: it replaces the publication's columns, or, if ``partial``, those that are not NULL and, with
    NULL, those that the column ``clear`` (an array of names) lists. A row in which the column ``deleted`` is true ends
    the publication. Rows of one key are applied by ascending ``order``, a column of whole numbers, dates or
    timestamps; a late row sets only what no newer row has set, a repeated one nothing. Without ``order`` a batch may
    have one row a key.

    The result has the updates' columns as the publication then has them (in a row about its deletion: as it had them),
    with the order of the update that is the cause; ``subscription``, ``transition`` and ``batch``, the batch's number.

    ``subscriptions`` is the path of an index, or a DataFrame with columns ``id`` and ``expression``. Each batch of a
    stream uses the version of the index that is current when it begins. Where that differs from the version of the
    batch before, stored publications enter new subscriptions and leave those that are gone; the order is NULL there.

    A stream keeps its publications in ``state``, a directory that all workers share, and repeats a batch exactly after
    a failure. A batch DataFrame begins with no publications, unless ``state`` and a ``batch`` number are given: then
    batches of ascending numbers continue each other, and one that is run again gives what it gave. ``buckets`` says
    over how many tasks the publications of a new state are spread. Rows that cannot be applied are found in the
    ``quarantine``; the other arguments, ``records`` too, are those of `match`. docs/guides/transitions.md has examples.
    """
    if not isinstance(updates, DataFrame):
        raise SparkError(f"the updates are a DataFrame, batch or streaming, not {type(updates).__name__}")
    given = check_asked(missing, bad, column, version, space, engine, quarantine, operators)
    check_flag("partial", partial)
    kept = local_path(records) if records is not None else None
    reading = _reading(updates.schema, key, order, deleted, clear, partial)
    check_output(updates.schema, column, [TRANSITION, BATCH, REASON, IGNORED, HASH, TIE, BUCKET])
    published = updates.select(*map(column_of, reading.published))
    keeping = _keeping(updates, state, batch, buckets, reading, published.schema)
    _check_operators(given)
    if isinstance(subscriptions, DataFrame):
        check_no_version(version)
        path, manifest = _indexed(subscriptions, published, keeping, scratch, space, engine, bad, given)
    else:
        path = local_path(subscriptions)
        if space is not None:
            raise SparkError("an index has its own space; give space=... to build_index")
        manifest = read_index(updates.sparkSession, path, version)
    points = as_points(published.schema, manifest.read_space())
    _check_names(published, manifest)
    check_events(points, manifest, missing != "error")
    id_type = manifest_id_type(manifest)
    stepping = Stepping(
        reading=reading,
        index=path,
        build=manifest.build,
        version=manifest.pin if keeping is None or version is not None else None,
        id_type=manifest.id_type,
        id_arrow=arrow_type(id_type),
        missing=missing,
        column=column,
        state=keeping and keeping.path,
        buckets=keeping.buckets if keeping else 1,
        query=keeping.query if keeping else None,
        batch=batch,
        operators=given,
        called=uuid.uuid4().hex if given else "",
        records=kept,
    )
    carried = plain(updates)
    publication = column_of(carried.columns[updates.columns.index(key)])
    row = F.xxhash64(*map(column_of, _hashable(carried.schema)))
    prepared = carried.withColumns({HASH: F.xxhash64(publication), TIE: row})
    fields = [
        *updates.schema.fields,
        types.StructField(column, id_type),
        types.StructField(TRANSITION, types.StringType()),
        types.StructField(BATCH, types.LongType()),
        types.StructField(REASON, types.StringType()),
        types.StructField(IGNORED, types.LongType()),
    ]
    outgoing = types.StructType([types.StructField(field.name, field.dataType) for field in fields])
    if keeping is None:
        found = map_in_arrow(prepared.repartition(publication), stepping, outgoing, updates.columns)
    else:
        # Partitions are buckets: both are the hash of the key modulo their number. The second exchange keeps them so
        # whatever is done with the result, for a coalesce would have a task run several buckets under one number.
        # It has fewer partitions: transitions are far fewer than updates, and a sink writes a file for each.
        number = F.pmod(F.hash(publication), F.lit(keeping.buckets))
        spread = _spread(prepared.withColumn(BUCKET, number), publication, keeping.buckets)
        partitions = -(-keeping.buckets // BUCKETS_A_PARTITION)
        found = map_in_arrow(spread, stepping, outgoing, updates.columns).repartition(partitions, column_of(key))
    return _split(found, reading, column, quarantine, path, manifest)


def _spread(prepared: DataFrame, publication: Column, buckets: int) -> DataFrame:
    """Return updates in the partitions of their buckets.

    A batch has a row without an update for each bucket: where nothing is in any of them Spark would run nothing, yet
    subscriptions may have changed. Streams are not united with tables, and older Sparks than 4.1 cannot be told the
    number of a partition.
    """
    if prepared.isStreaming or not hasattr(prepared, "repartitionById"):
        return prepared.repartition(buckets, publication)
    fields = prepared.schema.fields
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in fields[:-1]]
    rows = prepared.sparkSession.range(buckets).select(*nothing, F.col("id").cast("int").alias(BUCKET))
    return prepared.unionAll(rows).repartitionById(buckets, BUCKET)


class _Keeping(NamedTuple):
    """Where publications are kept: the directory, how many buckets it has, and the name of a series of batches."""

    path: str
    buckets: int
    query: str | None


def _reading(
    schema: types.StructType, key: str, order: str | None, deleted: str | None, clear: str | None, partial: bool
) -> Reading:
    """Return how the updates' columns are read; raise unless they have the types that this needs."""
    roles = {"key": key, "order": order, "deleted": deleted, "clear": clear}
    check_name("key", key)
    named = {role: name for role, name in roles.items() if name is not None}
    for role, name in named.items():
        check_name(role, name)
    kinds: dict[str, tuple[Any, str]] = {
        "key": (_KEYS, "text, a whole number, a date or a decimal"),
        "order": (_ORDERS, "a whole number, a date or a timestamp"),
        "deleted": ((types.BooleanType,), "a boolean"),
        "clear": ((types.ArrayType,), "an array of column names"),
    }
    for role, name in named.items():
        if name not in schema.names:
            raise MissingColumnError(
                f"the updates have no column {name} ({role}=...); {nearest_of(name, schema.names)}"
            )
        kind = schema[name].dataType
        wanted, said = kinds[role]
        plain = not isinstance(kind, types.StringType) or kind == types.StringType()  # a collation has its own equality
        if not isinstance(kind, wanted) or not plain or (role == "clear" and kind.elementType != types.StringType()):
            raise SparkError(f"the column {name} ({role}=...) holds {kind.simpleString()}; {said} is expected, cast it")
    if len(set(named.values())) < len(named):
        raise SparkError(f"one column has several roles: {', '.join(f'{role}={n!r}' for role, n in named.items())}")
    if clear is not None and not partial:
        raise SparkError("clear=... names columns that a partial update sets to NULL; pass partial=True with it")
    return Reading(tuple(schema.names), key, order, deleted, clear, partial)


def _check_names(published: DataFrame, manifest: Manifest) -> None:
    """Refuse columns whose names differ from those of the index in case only: a state has them by their names."""
    known = known_schema(published, manifest.read_space(), manifest.operands)
    for given, wanted in zip(paths_of(published.schema), paths_of(known), strict=True):
        if given != wanted:
            raise SparkError(
                f"the column {'.'.join(given)} of the updates is {'.'.join(wanted)} in the index; rename it with "
                "withColumnRenamed, or alias the struct"
            )


def _check_operators(operators: tuple[Operator, ...]) -> None:
    """Refuse operators whose failure is an error of the event: a stored publication has no row to refuse."""
    for operator in operators:
        if operator.on_failure == "error":
            raise SparkError(
                f"the operator {operator.name} has on_failure='error', but transitions asks it about stored "
                "publications, where no row can be refused; declare it with on_failure='false': what failed is unknown"
            )


def _keeping(
    updates: DataFrame,
    state: str | Path | None,
    batch: int | None,
    buckets: int | None,
    reading: Reading,
    published: types.StructType,
) -> _Keeping | None:
    """Return where publications are kept, None if they are not; raise if that state is of other updates."""
    if state is None:
        if updates.isStreaming:
            raise SparkError(
                "a stream keeps its publications between batches; pass state='...', a directory that all workers share"
            )
        if batch is not None or buckets is not None:
            raise SparkError("batch and buckets belong to a state; pass state='...' with them")
        return None
    if updates.isStreaming == (batch is not None):
        said = "a stream numbers its batches itself; leave batch out" if updates.isStreaming else "pass batch=N too"
        raise SparkError(f"a state goes from batch to batch: {said}")
    if batch is not None:
        check_count("batch", batch, 0)
    if buckets is not None:
        check_count("buckets", buckets)
    path = local_path(state)
    columns = {field.name: field.dataType.simpleString() for field in published.fields}
    wanted = {"key": reading.key, "order": reading.order, "partial": reading.partial, "columns": columns}
    # An older Spark does not run a batch without any update.
    asked = batch if hasattr(updates, "repartitionById") else None
    found = ask(updates.sparkSession, lambda: settle(path, wanted | {"buckets": buckets or BUCKETS}, asked))
    for name, value in wanted.items():
        if found[name] != value:
            raise SparkError(
                f"the state {path} was made with {name} {_difference(found[name], value)}; "
                "start again with a new state and checkpoint"
            )
    if buckets not in (None, found["buckets"]):
        raise SparkError(f"the state {path} has {found['buckets']} buckets, not {buckets}; leave buckets out")
    return _Keeping(path, found["buckets"], None if updates.isStreaming else found["id"])


def _difference(old: Any, new: Any) -> str:
    """Return how two settings of a state differ.

    >>> _difference({"x": "double", "y": "int"}, {"x": "string"}), _difference("a", "b")
    ('x double, y int, not x string, y left out', "'a', not 'b'")
    """
    if not isinstance(old, dict):
        return f"{old!r}, not {new!r}"
    differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    before, after = (", ".join(f"{name} {each.get(name, 'left out')}" for name in differing) for each in (old, new))
    return f"{before}, not {after}"


def _indexed(
    subscriptions: DataFrame,
    published: DataFrame,
    keeping: _Keeping | None,
    scratch: str | Path | None,
    space: Space | None,
    engine: str,
    bad: Bad,
    operators: tuple[Operator, ...],
) -> tuple[str, Manifest]:
    """Return an index of a DataFrame of subscriptions; beside a state it is kept, and changed when the table has."""
    session = published.sparkSession
    # An index is shown single values only; what it is to expect of ranges it learns as they come.
    kinds = published.schema.simpleString()
    sample = published if space is None or as_points(published.schema, space).simpleString() == kinds else None
    if keeping is None:
        path = local_path(scratch) if scratch is not None else temporary(published)
        path = f"{path}/{uuid.uuid4().hex}"
        return path, build(subscriptions, path, 1, sample, space, engine, bad, operators=operators)
    path = f"{keeping.path}/subscriptions"
    row = F.xxhash64("id", "expression")
    content = subscriptions.agg(F.count("*"), F.sum(row.cast("decimal(38,0)")), F.bit_xor(row)).collect()[0]
    name = "/".join(str(each) for each in content) + f"/{space and space.to_json()}/{engine}"
    current, same = ask(session, lambda: current_of(path, name))
    if same:
        return path, read_index(session, path, current)
    manifest = build(subscriptions, path, current + 1, sample, space, engine, bad, operators=operators)
    ask(session, lambda: note_current(path, name, manifest.version))
    return path, manifest


def _split(
    found: DataFrame, reading: Reading, column: str, quarantine: Quarantine | None, path: str, manifest: Manifest
) -> DataFrame:
    """Return the transitions of a result that holds refused updates and counts too; the quarantine gets those."""
    reason = F.col(REASON)
    counts = [
        *counted(reason, F.col(TRANSITION), "transitions"),
        F.coalesce(F.sum(F.col(IGNORED)), F.lit(0)).alias("ignored"),
    ]
    if quarantine is not None:
        told = reason.alias(reason_name(list(reading.columns)))
        refused = found.where(is_refused(reason)).select(*map(column_of, reading.columns), told)
        counting = None if found.isStreaming else found.agg(*counts)
        quarantine._fill(refused, refused_subscriptions(found.sparkSession, path, manifest), counting)
    if found.isStreaming:
        found = found.observe(f"transitions_{uuid.uuid4().hex[:8]}", *counts)
    chosen = [*reading.published, column, TRANSITION, BATCH]
    return found.where(F.col(TRANSITION).isNotNull()).select(*map(column_of, chosen))


def _hashable(schema: types.StructType) -> list[str]:
    """Return the columns that Spark can hash: those that hold no map.

    >>> kinds = {"a": types.LongType(), "b": types.ArrayType(types.MapType(types.LongType(), types.LongType()))}
    >>> _hashable(types.StructType([types.StructField(name, kind) for name, kind in kinds.items()]))
    ['a']
    """
    return [field.name for field in schema.fields if not any(word in field.dataType.json() for word in _UNHASHABLE)]


_UNHASHABLE = ('"map"', '"variant"', '"calendar_interval"')
