"""Spaces: declared, read from Arrow, inferred from values, written as JSON and read back."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Address, Boolean, Number, Repeated, Space, Text, Time
from tocsin.errors import SpaceError

scalars = st.one_of(
    st.sampled_from(
        [Number(), Number("int64"), Boolean(), Text(), Address(), Time(), Time("timestamp_ntz"), Time("date")]
    ),
    st.integers(1, 38).flatmap(
        lambda digits: st.integers(0, digits).map(lambda scale: Number(f"decimal({digits}, {scale})"))
    ),
    st.sampled_from(["USD", "€", "kg", "GB", "m/s", "degC", "%"]).map(lambda unit: Number(unit=unit)),
)
names = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=6)
dimensions = st.recursive(
    st.one_of(scalars, scalars.map(Repeated)),
    lambda inner: st.dictionaries(names, inner, min_size=1, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(names, dimensions, min_size=1, max_size=4),
    st.sampled_from(["null", "any"]),
    st.sampled_from(["UTC", "Europe/Paris"]),
)
def test_json_brings_a_space_back(declared: dict[str, Any], unspecified: Any, zone: str) -> None:
    space = Space(declared, unspecified=unspecified, timezone=zone)
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space
    assert hash(Space.from_json(space.to_json())) == hash(space)


def test_a_file_brings_a_space_back(tmp_path: Path) -> None:
    space = Space({"prix": Number("decimal(10, 2)", unit="€"), "a": {"b": {"c": Repeated(Time("date"))}}})
    space.save(tmp_path / "space.json")
    assert Space.load(tmp_path / "space.json") == space
    assert "€" in (tmp_path / "space.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["", "[]", "{}", "no", '{"tocsin_space": 99}', '{"tocsin_space": 1}', "\udce9"])
def test_what_is_no_space_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "space.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SpaceError, match="space"):
        Space.load(path)


def test_arrow_types_become_dimensions() -> None:
    schema = pa.schema(
        {
            "i": pa.int16(),
            "u": pa.uint64(),
            "f": pa.float32(),
            "c": pa.decimal128(10, 2),
            "s": pa.large_string(),
            "v": pa.string_view(),
            "k": pa.dictionary(pa.int8(), pa.string()),
            "b": pa.bool_(),
            "t": pa.timestamp("ns", "Asia/Tokyo"),
            "z": pa.timestamp("ms"),
            "n": pa.date64(),
            "l": pa.list_(pa.int64()),
            "m": pa.large_list(pa.string()),
            "x": pa.list_(pa.bool_(), 3),
            "o": pa.struct({"p": pa.int8(), "q": pa.struct({"r": pa.string()})}),
            "items": pa.list_(pa.struct({"sku": pa.string(), "sizes": pa.list_(pa.int64())})),
            "left_out": pa.binary(),
            "also": pa.map_(pa.string(), pa.int64()),
        }
    )
    assert Space.from_arrow(schema) == Space(
        {
            "i": Number("int64"),
            "u": Number("decimal(20, 0)"),
            "f": Number(),
            "c": Number("decimal(10, 2)"),
            "s": Text(),
            "v": Text(),
            "k": Text(),
            "b": Boolean(),
            "t": Time(),
            "z": Time("timestamp_ntz"),
            "n": Time("date"),
            "l": Repeated(Number("int64")),
            "m": Repeated(Text()),
            "x": Repeated(Boolean()),
            "o": {"p": Number("int64"), "q": {"r": Text()}},
            "items": {"sku": Repeated(Text()), "sizes": Repeated(Number("int64"))},
        }
    )


def test_values_become_the_narrowest_dimension_that_holds_them_all() -> None:
    events = [
        {"a": 1, "b": 1, "c": Decimal("1.5"), "d": None, "e": [1, None], "f": {"g": "x"}, "h": True},
        {"a": 2, "b": 2.5, "c": 12, "d": date(2020, 1, 1), "e": [], "i": datetime(2020, 1, 1), "j": IPv4Address(1)},
        {"c": Decimal("0.125"), "e": 2.5, "k": datetime(2020, 1, 1, tzinfo=UTC), "l": None},
    ]
    assert Space.infer(events) == Space(
        {
            "a": Number("int64"),
            "b": Number(),
            "c": Number("decimal(22, 3)"),
            "d": Time("date"),
            "e": Repeated(Number()),
            "f": {"g": Text()},
            "h": Boolean(),
            "i": Time("timestamp_ntz"),
            "j": Address(),
            "k": Time(),
        }
    )
    assert Space.infer(pa.table({"a": [1]})) == Space({"a": Number("int64")})


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([{"a": 1}, {"a": "x"}], "a: some values are number, some text; declare the space"),
        ([{"a": {"b": b"x"}}], "a.b: no dimension holds b'x'"),
        ([1], "event 0 is not a dictionary: 1"),
        ({"a": 1}, "infer takes several events"),
        ([], "a space needs at least one dimension"),
        ([{"a": None}], "a space needs at least one dimension"),
        ([{"a": Decimal("1e50")}], "a decimal has 1 to 38 digits"),
    ],
)
def test_what_cannot_be_inferred_is_told(events: Any, reason: str) -> None:
    with pytest.raises(SpaceError, match=reason.replace("(", r"\(")):
        Space.infer(events)


@pytest.mark.parametrize(
    ("declare", "reason"),
    [
        (lambda: Space({}), "a space needs at least one dimension"),
        (lambda: Space({"a": int}), "a: a dimension is Number"),  # type: ignore[dict-item]
        (lambda: Space({"": Text()}), "the name of a dimension is text"),
        (lambda: Space({1: Text()}), "the name of a dimension is text"),  # type: ignore[dict-item]
        (lambda: Space({"a": Text()}, unspecified="some"), "unspecified is 'null' or 'any'"),  # type: ignore[arg-type]
        (lambda: Space({"a": Text()}, timezone="Mars/Base"), "there is no time zone 'Mars/Base'"),
        (lambda: Number("float"), "a number is 'double', 'int64' or 'decimal"),
        (lambda: Number("decimal(39, 0)"), "1 to 38 digits"),
        (lambda: Number("decimal(3, 4)"), "at most as many after the point"),
        (lambda: Time("hour"), "a time is 'timestamp'"),  # type: ignore[arg-type]
        (lambda: Repeated(Repeated(Text())), "repeated values are numbers"),  # type: ignore[arg-type]
        (lambda: Space.from_arrow("no schema"), "this is not an Arrow schema"),
    ],
)
def test_what_is_declared_wrongly_is_told(declare: Any, reason: str) -> None:
    with pytest.raises(SpaceError, match=reason):
        declare()


def test_names_are_found_exactly_or_else_but_for_their_case() -> None:
    space = Space({"Price": Text(), "size": Text(), "SIZE": Text(), "a": {"B": Text()}})
    assert space.find(("price",)) == ("Price",)
    assert space.find(("SIZE",)) == ("SIZE",)
    assert space.find(("Size",)) is None, "two dimensions differ only in case"
    assert space.find(("A", "b")) == ("a", "B")
    assert (space["a.B"], "a.B" in space, "a" in space, len(space)) == (Text(), True, False, 4)
    assert space.nearest("prise") == "did you mean Price?"
    assert space.nearest("qqq") == "there is Price, SIZE, a.B, size"


def test_a_field_given_twice_is_refused_however_it_is_spelled() -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("a", pa.string())])
    with pytest.raises(SpaceError, match="the schema has several fields 'a'"):
        Space.from_arrow(schema)
    struct = pa.struct([pa.field("b", pa.int64()), pa.field("b", pa.string())])
    with pytest.raises(SpaceError, match="a struct has several fields 'b'"):
        Space.from_arrow(pa.schema({"a": struct}))
    with pytest.raises(SpaceError, match=r"a\.b is declared twice"):
        Space({"a.b": Number(), "a": {"b": Text()}})
    with pytest.raises(SpaceError, match=r"a\.b is declared twice"):
        Space.from_arrow(pa.schema({"a.b": pa.int64(), "a": pa.struct({"b": pa.int64()})}))
    with pytest.raises(SpaceError, match=r"a\.b is given twice"):
        Space.infer([{"a.b": 1, "a": {"b": 2}}])
    with pytest.raises(SpaceError, match=r"a\.b is given twice"):
        Space.infer([{"a": {"b": 2}}, {"a.b": 1}])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([2**70], Number("decimal(22, 0)")),
        ([1, -(2**63) - 1], Number("decimal(19, 0)")),
        ([np.int64(5), 6], Number("int64")),
        ([np.float32(1.5)], Number("double")),
        ([np.bool_(True)], Boolean()),
        ([np.str_("x")], Text()),
        ([np.datetime64("2020-01-01")], Time("date")),
        ([[np.int8(1), None]], Repeated(Number("int64"))),
    ],
    ids=repr,
)
def test_values_of_numpy_and_beyond_64_bits_are_inferred(values: list[Any], kind: Any) -> None:
    assert Space.infer([{"f": value} for value in values])["f"] == kind


def test_a_list_of_dictionaries_is_inferred_as_repeated_fields() -> None:
    space = Space.infer([{"items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2.5}]}, {"items": []}, {"items": None}])
    assert dict(zip(space, (space[name] for name in space), strict=True)) == {
        "items.sku": Repeated(Text()),
        "items.n": Repeated(Number("double")),
    }


def test_a_number_that_no_dimension_holds_is_told() -> None:
    with pytest.raises(SpaceError, match="a decimal has 1 to 38 digits"):
        Space.infer([{"f": 10**40}])
