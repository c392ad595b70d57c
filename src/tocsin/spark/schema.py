"""Schemas at the border with Spark: Spark types to Arrow and to a space, and whether events still fit an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, types

from tocsin.errors import MissingColumnError, SpaceError, SparkError, SubscriptionError
from tocsin.space import Address, Concept, Number, Repeated, Space, Text, Time
from tocsin.space.names import column_key
from tocsin.space.reading import Readings
from tocsin.space.space import nearest_of
from tocsin.spark.manifest import Manifest

_PLAIN: dict[type[types.DataType], pa.DataType] = {
    types.BooleanType: pa.bool_(),
    types.ByteType: pa.int8(),
    types.ShortType: pa.int16(),
    types.IntegerType: pa.int32(),
    types.LongType: pa.int64(),
    types.FloatType: pa.float32(),
    types.DoubleType: pa.float64(),
    types.DateType: pa.date32(),
    types.TimestampType: pa.timestamp("us", "UTC"),
    types.TimestampNTZType: pa.timestamp("us"),
}

_NO_AXIS = pa.binary()
"""Stands for every type that no axis holds: a space leaves such columns out, events carry them through."""


def arrow_type(kind: types.DataType) -> pa.DataType:
    """Return the Arrow type of a Spark type, or bytes where the type has no axis (maps, intervals, collated text).

    >>> arrow_type(types.ArrayType(types.StringType()))
    ListType(list<element: string>)
    """
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)]
    if isinstance(kind, types.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, types.StringType):
        # Other collations compare by rules that are not those of code points.
        return pa.string() if kind == types.StringType() else _NO_AXIS
    if isinstance(kind, types.ArrayType):
        return pa.list_(pa.field("element", arrow_type(kind.elementType)))
    if isinstance(kind, types.StructType):
        return pa.struct([pa.field(field.name, arrow_type(field.dataType)) for field in _named(kind)])
    return _NO_AXIS


def space_of(schema: types.StructType, timezone: str = "UTC") -> Space:
    """Return the space of events with this schema; columns whose type has no axis are left out.

    >>> space_of(types.StructType([types.StructField("price", types.DoubleType())]))
    Space({'price': Number(kind='double', unit=None)})
    """
    fields = [pa.field(field.name, arrow_type(field.dataType)) for field in _named(schema)]
    if schema.fields and all(field.type == _NO_AXIS for field in fields):
        raise SpaceError(f"the events have no column that a subscription can test; {untested(schema)}")
    try:
        return Space.from_arrow(pa.schema(fields), timezone=timezone)
    except SpaceError as error:
        raise SpaceError(f"{error}; the events' columns: {', '.join(schema.names) or 'none'}") from None


def _named(kind: types.StructType) -> list[types.StructField]:
    """Return the fields that an expression can name; one with a dot, which reads as a path, is carried, not tested."""
    return [field for field in kind.fields if "." not in field.name]


def untested(schema: types.StructType) -> str:
    """Return in words which columns are carried only, and what would make them fields; nothing where all are fields.

    >>> untested(types.StructType().add("raw", "binary").add("n", "integer").add("a.b", "integer"))
    'cannot be tested: raw (binary), a.b (by its name); cast or rename them, or take values out of them'
    """
    found = [
        f"{field.name} ({'by its name' if '.' in field.name else field.dataType.simpleString()})"
        for field in schema.fields
        if "." in field.name or arrow_type(field.dataType) == _NO_AXIS
    ]
    return f"cannot be tested: {', '.join(found)}; cast or rename them, or take values out of them" if found else ""


def check_frame(name: str, value: object, batch: bool = False) -> None:
    """Raise unless a value is a DataFrame of Spark; where a ``batch`` is wanted, no stream."""
    if not isinstance(value, DataFrame):
        raise SparkError(
            f"{name} is to be a DataFrame of Spark, not {type(value).__module__}.{type(value).__qualname__}; make one "
            "with spark.createDataFrame(...) or spark.read"
        )
    if batch and value.isStreaming:
        raise SparkError(
            f"{name} is a streaming DataFrame, where a table is expected; read it with spark.read. Changes that arrive "
            "on a stream go to an index with update_index, from foreachBatch"
        )


def session_timezone(frame: DataFrame) -> str:
    """Return the zone in which this DataFrame's session reads timestamps written without one."""
    return str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))


def check_subscriptions(schema: types.StructType) -> types.DataType:
    """Return the type of the ids of a table of subscriptions; raise unless it has what is needed."""
    names = [column_key(name) for name in schema.names]
    for name in ("id", "expression"):
        if names.count(name) > 1:
            raise SubscriptionError(f"the subscriptions have two columns named {name}; drop or rename one")
        if name not in names:
            raise MissingColumnError(f"subscriptions need a column {name}; {nearest_of(name, schema.names)}")
    kinds = {column_key(field.name): field.dataType for field in schema.fields}
    if not isinstance(kinds["expression"], types.StringType):
        raise SubscriptionError(f"the column expression holds {kinds['expression'].simpleString()}; string is expected")
    if not isinstance(kinds["id"], types.StringType | types.IntegralType | types.DateType | types.DecimalType):
        raise SubscriptionError(
            f"the column id holds {kinds['id'].simpleString()}; text, a whole number, a date or a decimal is expected"
        )
    return kinds["id"]


def check_events(schema: types.StructType, manifest: Manifest, allow_missing: bool) -> None:
    """Raise unless events with this schema have every field that subscriptions test, in the type of the index's space,
    and every field that operators receive, of whatever type: what does not fit fails the calls that it goes to.

    A space inferred from a schema wants the same types again; a declared one may read texts as times or addresses.
    """
    space = manifest.read_space()
    found = space_of(schema, space.timezone)
    names = set(paths_of(schema))
    readings = Readings(space)
    for name in (*manifest.tested, *manifest.operands):
        path = tuple(name.split("."))
        path = space.find(path) or path
        free = name not in manifest.tested or path in readings or _takes_quantities(space.scalar(path))
        if free and readings.is_there(names.__contains__, path):
            continue
        if free or name not in found:
            if allow_missing:
                continue
            raise MissingColumnError(
                f"the events have no column {name}, which subscriptions test; {nearest_of(name, list(found))} "
                "(pass missing='unspecified' to read it as left out)"
            )
        wanted, present = space[name], found[name]
        if wanted != present and (manifest.inferred or not _readable(present, wanted)):
            raise SparkError(
                f"the column {name} of the events is {_shown(present)}, but the index was built for {_shown(wanted)}; "
                "cast the column, or build the index anew for this schema"
            )


def as_points(schema: types.StructType, space: Space, above: tuple[str, ...] = ()) -> types.StructType:
    """Return a schema in which ranges and sets of values have the type of one value.

    A range is a struct of ``low``, ``high`` and perhaps ``closed``, a set an array of values or of ranges, in a column
    that is a plain dimension of the space.

    >>> kind = types.StructType().add("low", "long").add("high", "long")
    >>> as_points(types.StructType().add("x", kind), Space({"x": Number("int64")})).simpleString()
    'struct<x:bigint>'
    """
    fields = []
    for field in schema.fields:
        path, kind = (*above, field.name), field.dataType
        if path in space.paths() and path not in space.repeated:
            if isinstance(kind, types.ArrayType) and not above:
                kind = kind.elementType
            kind = _one_value(kind, ".".join(path))
        elif isinstance(kind, types.StructType):
            kind = as_points(kind, space, path)
        fields.append(types.StructField(field.name, kind))
    return types.StructType(fields)


def _one_value(kind: types.DataType, name: str) -> types.DataType:
    """Return the type of the bounds of a range, or a type that is of no range as it is."""
    if not isinstance(kind, types.StructType) or not {"low", "high"} <= set(kind.names):
        return kind
    inner = {field.name: field.dataType for field in kind.fields}
    others = set(inner) - {"low", "high", "closed"}
    if others or inner["low"] != inner["high"] or inner.get("closed", types.StringType()) != types.StringType():
        raise SparkError(
            f"the column {name} holds {kind.simpleString()}; a range is a struct of low and high, of one type, and "
            "perhaps closed, a text (both, left, right, neither)"
        )
    return inner["low"]


def paths_of(schema: types.StructType, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every column and of every field inside one, through arrays too."""
    for field in schema.fields:
        yield (*above, field.name)
        kind = field.dataType
        while isinstance(kind, types.ArrayType):
            kind = kind.elementType
        if isinstance(kind, types.StructType):
            yield from paths_of(kind, (*above, field.name))


def _takes_quantities(kind: Any) -> bool:
    """Return whether a dimension reads texts and structs as numbers with a unit; what does not fit is found by row."""
    return isinstance(kind, Number) and kind.unit is not None


def _readable(present: Any, wanted: Any) -> bool:
    """Return whether a declared dimension can read values of an inferred one."""
    if isinstance(present, Repeated) and not isinstance(wanted, Repeated):
        return False
    inner, target = (kind.of if isinstance(kind, Repeated) else kind for kind in (present, wanted))
    return inner.type == target.type or (isinstance(inner, Text) and isinstance(target, Address | Concept | Time))


def _shown(kind: Any) -> str:
    """Return a dimension as a message names it.

    >>> _shown(Repeated(Text())), _shown(Time("date"))
    ('repeated text', 'time (date)')
    """
    if isinstance(kind, Repeated):
        return f"repeated {_shown(kind.of)}"
    inner = getattr(kind, "kind", None)
    return f"{kind.type} ({inner})" if inner else str(kind.type)


def check_output(schema: types.StructType, column: str, added: list[str]) -> None:
    """Raise if events have two columns of one name, or one of the name of a column that is to be added: ``column``,
    which may be called otherwise, or one of those that may not. Names that differ in case only are one, as in SQL."""
    folded = [column_key(name) for name in schema.names]
    for name in schema.names:
        if folded.count(column_key(name)) > 1:
            raise SparkError(
                f"the events have two columns named {name}, as case does not tell names apart; rename one with "
                "withColumnRenamed or alias"
            )
    for name in (column, *added):
        if column_key(name) in folded:
            way_out = "rename it, or pass column='...' for ours" if name == column else "rename it"
            raise SparkError(f"the events have a column {name} already, which the result is to have; {way_out}")
    if column_key(column) in map(column_key, added):
        raise SparkError(f"column={column!r} is the name of another column of the result; choose a different one")


def check_carried(schema: types.StructType) -> None:
    """Raise if events have a column that PySpark cannot pass to Python, whether it is tested or not."""
    for field in schema.fields:
        odd = _not_passed(field.dataType)
        if odd is not None:
            raise SparkError(
                f"the column {field.name} of the events holds {odd}, which PySpark does not pass to Python; cast it "
                f"(to a string, for example), or leave it out with events.drop({field.name!r})"
            )


def _not_passed(kind: types.DataType, nullable: bool = True) -> str | None:
    """Return the type in a type that Arrow does not carry from Spark to Python, or None.

    An array or map without any type of elements, as ``array()`` makes it, has none that could be NULL.

    >>> _not_passed(types.ArrayType(types.CalendarIntervalType())), _not_passed(types.LongType())
    ('interval', None)
    """
    if isinstance(kind, types.CalendarIntervalType | types.YearMonthIntervalType):
        return kind.simpleString()
    if isinstance(kind, types.NullType):
        return None if nullable else "elements without a type"
    inner: list[tuple[types.DataType, bool]] = []
    if isinstance(kind, types.ArrayType):
        inner = [(kind.elementType, kind.containsNull)]
    elif isinstance(kind, types.MapType):
        inner = [(kind.keyType, False), (kind.valueType, kind.valueContainsNull)]
    elif isinstance(kind, types.StructType):
        inner = [(field.dataType, field.nullable) for field in kind.fields]
    return next((odd for each in inner if (odd := _not_passed(*each)) is not None), None)
