"""A template and its literals mean what the text means: escapes, numerals, the bulk path against the plain one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.oracle.trees import trees

from tocsin.errors import ExpressionError, TocsinError
from tocsin.language import parse, to_text
from tocsin.language.arithmetic import NeedsValueError
from tocsin.language.literals import conjuncts_of, read_constant, refusal, split_texts, unescape, whole_texts
from tocsin.language.parser import Template
from tocsin.language.tree import Comparison, Constant, Expression
from tocsin.space import Number, Space, Text, Time
from tocsin.space.axes import Axes
from tocsin.space.filling import Filled, Planner


def constant_of(literal: str) -> Constant:
    tree = parse(f"a = {literal}")
    assert isinstance(tree, Comparison) and isinstance(tree.constant, Constant)
    return tree.constant


@pytest.mark.parametrize(
    ("inner", "value"),
    [
        (r"a\nb", "a\nb"),
        (r"\0\b\n\r\t\Z", "\0\b\n\r\t\x1a"),
        (r"\'\"\\", "'\"\\"),
        (r"\%\_", r"\%\_"),
        (r"\q\é", "qé"),
        (r"\101\060", "A0"),
        (r"\400", "400"),
        (r"\u00e9\U0001F600", "é😀"),
        (r"\u12", "u12"),
        (r"\ud800", "\N{REPLACEMENT CHARACTER}"),
        (r"\\u0041", "\\u0041"),
        ("''", "'"),
        ('""', '""'),
        ("", ""),
        ("日本", "日本"),
    ],
)
def test_escapes_are_read_as_spark_reads_them(inner: str, value: str) -> None:
    assert unescape(inner, "'") == value
    assert constant_of(f"'{inner}'").value == value


def test_double_quotes_make_strings_too() -> None:
    assert constant_of('"it\'s"').value == "it's"
    assert constant_of('"a""b"').value == 'a"b'
    assert constant_of("\"a''b\"").value == "a''b"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"r'\d+'", r"\d+"),
        (r"R'a\'", "a\\"),
        (r"""r"it's \n" """, r"it's \n"),
        ("r''", ""),
        ("r'%_é'", "%_é"),
    ],
)
def test_a_raw_string_is_what_stands_between_its_quotes(written: str, value: str) -> None:
    assert constant_of(written).value == value


def test_a_raw_string_may_hold_an_and_and_must_be_closed() -> None:
    import tocsin

    matcher = tocsin.Matcher(tocsin.Space({"s": tocsin.Text(), "r": tocsin.Text()}))
    matcher.subscribe_many(
        pa.table(
            {"id": [0, 1, 2], "expression": [r"s RLIKE r'^\d+\.$' AND r = r'x'", "s = r'( AND '", r"s LIKE r'a\%'"]}
        )
    )
    assert matcher.match({"s": "12.", "r": "x"}) == [0]
    assert matcher.match({"s": "( AND ", "r": "x"}) == [1]
    assert matcher.match({"s": "a%", "r": "x"}) == [2]
    with pytest.raises(ExpressionError, match="never closed"):
        matcher.subscribe(3, r"s = r'abc")


@pytest.mark.parametrize(
    ("numeral", "kind", "value"),
    [
        ("0", "integer", "0"),
        ("007", "integer", "7"),
        ("999999999999999999", "integer", "999999999999999999"),
        ("9223372036854775808", "integer", "9223372036854775808"),
        ("12L", "integer", "12"),
        ("12s", "integer", "12"),
        ("12Y", "integer", "12"),
        ("1.50", "decimal", "1.50"),
        ("12BD", "decimal", "12"),
        ("1.5bd", "decimal", "1.5"),
        ("1e2BD", "decimal", "100"),
        ("12345678901234567890.5", "decimal", "12345678901234567890.5"),
        ("1e3", "double", "1000.0"),
        ("1E-3", "double", "0.001"),
        ("1.e5", "double", "100000.0"),
        (".5e+1", "double", "5.0"),
        ("2D", "double", "2.0"),
        ("2.5d", "double", "2.5"),
        ("0.1f", "double", "0.10000000149011612"),
    ],
)
def test_numerals_have_the_types_of_spark(numeral: str, kind: str, value: str) -> None:
    found = constant_of(numeral)
    assert found.kind == kind
    assert found == read_constant(value, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("written", ["1e", "1_000", "0x1F", "1e5L", "1.5L", "0b1", "12abc", "1..2", "1.2.3"])
def test_what_runs_into_a_name_is_no_number(written: str) -> None:
    with pytest.raises(ExpressionError):
        parse(f"a = 7 AND b = {written}")


def test_texts_that_differ_in_constants_share_a_template() -> None:
    batch = split_texts(pa.array(["a = 1 AND s = 'x'", "a = 22 AND s = 'it is'", "a = 1 AND s LIKE 'x'", "a = -1"]))
    assert batch.template_of.tolist() == [0, 0, 1, 2]
    assert batch.literals(np.array([0, 1]), 0, 1).integers.tolist() == [1, 22]  # type: ignore[union-attr]
    assert batch.literals(np.array([0, 1]), 1, 6).text.to_pylist() == ["x", "it is"]


def test_comments_and_names_hold_no_literals() -> None:
    batch = split_texts(pa.array(["a /* 1 */ = 2 -- 'x", "`1 'x` = 3", "a1.b2 = 4", "é1 = 5"]))
    assert batch.split.status.tolist() == [0] * 4
    assert np.diff(batch.split.literal_offsets).tolist() == [1, 1, 1, 1]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=5))
def test_splitting_a_batch_is_splitting_each_text(texts: list[str]) -> None:
    encodable = [text for text in texts if refusal(text) is None or "surrogate" not in str(refusal(text))]
    if not encodable:
        return
    whole = split_texts(pa.array(encodable, pa.string()))
    for row, text in enumerate(encodable):
        alone = split_texts(pa.array([text], pa.string()))
        assert (whole.template_of[row] < 0) == (alone.template_of[0] < 0) == (refusal(text) is not None)
        if whole.template_of[row] >= 0:
            assert whole.templates[whole.template_of[row]] == alone.templates[0]


TOKENS = [
    *(
        " AND ",
        " and ",
        "AND",
        "OR",
        " BETWEEN ",
        "a",
        "r",
        "1",
        "2.5",
        "7L",
        "1e3",
        ".5",
        "=",
        "(",
        ")",
        ".",
        "-",
        "/",
    ),
    *("'", '"', "`", "''", "'x%'", r"\\'", "--", "\n", "/*", "*/", " ", "\t", "\0", "é", "a.AND", "x1AND"),
]


@example(["AND.5", "a = 1 AND.5 < b", "a.AND", "1 BETWEEN a AND.5 AND b"])
@settings(max_examples=500)
@given(st.lists(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join), min_size=1, max_size=6))
def test_a_text_put_together_of_its_pieces_is_the_text_split_as_a_whole(texts: list[str]) -> None:
    held = pa.array(texts)
    offsets, pieces = conjuncts_of(held)
    rows = np.arange(len(texts))
    lengths = np.array([len(text.encode()) for text in texts])
    joined, plain = whole_texts(split_texts(pieces), offsets, rows, lengths), split_texts(held)
    for row in rows.tolist():
        ours, theirs = (int(each.template_of[row]) for each in (joined, plain))
        assert (ours < 0) == (theirs < 0)
        if ours < 0:
            continue
        assert joined.templates[ours].upper() == plain.templates[theirs].upper()
        first, last = plain.split.literal_offsets[row : row + 2]
        place = joined.split.literal_offsets[row]
        for ends, expected in (
            (joined.split.literal_start, plain.split.literal_start),
            (joined.split.literal_end, plain.split.literal_end),
        ):
            assert ends[place : place + last - first].tolist() == expected[first:last].tolist()


def test_more_texts_than_are_read_at_once_are_read_alike() -> None:
    """What is peculiar about texts (a program, a refusal, none or several boxes) stays with its text."""
    odd = {131_071: "x > 9", 131_073: "x < 0 AND (y = 1 OR z = 2) AND (y > 3 OR z < 4 OR x = 5)", 139_999: "x +"}
    odd |= {139_998: "x = 1 OR y = 2", 131_072: "x = 1 AND x = 2"}
    texts = [odd.get(row, f"x = {row}") for row in range(140_000)]
    planner = Planner(Axes(Space({name: Number("int64") for name in "xyz"})))
    filled = planner.fill(pa.array(texts))
    assert list(filled.problems) == [139_999]
    counts = np.bincount(filled.rows, minlength=len(texts))
    assert counts[[131_071, 131_072, 131_073, 139_998, 139_999]].tolist() == [1, 0, 2, 2, 0]
    assert [filled.rows[program.boxes].tolist() for program in filled.programs] == [[131_073] * 2]
    plain = np.flatnonzero(np.isin(filled.rows, list(odd), invert=True))
    assert (filled.boxes.take(plain).low == filled.rows[plain]).all() and len(plain) == 140_000 - len(odd)


def test_a_slice_of_a_larger_array_splits_like_a_copy() -> None:
    texts = pa.array(["a = 1", "b = 'x'", "c = 2.5"])
    sliced, copied = split_texts(texts.slice(1)), split_texts(pa.array(["b = 'x'", "c = 2.5"]))
    assert sliced.templates == copied.templates
    assert sliced.literals(np.array([1]), 0, 3).text.to_pylist() == ["2.5"]


def bound_to_its_text(text: str) -> Expression:
    """Parse a text by way of its template: the values of all literals are supplied when they are asked for."""
    batch = split_texts(pa.array([text]))
    template = Template(batch.templates[0])
    numbers = range(len(template.classes))
    bound = {
        number: batch.literals(np.zeros(1, np.int64), number, template.classes[number]).constant(0)
        for number in numbers
    }
    return template.parse(bound)


@settings(max_examples=400, deadline=None)
@given(trees)
def test_a_template_filled_with_its_literals_is_the_text(tree: Expression) -> None:
    text = to_text(tree)
    assert bound_to_its_text(text) == parse(text)


SPACE = Space({"i": Number("int64"), "d": Number(), "c": Number("decimal(10, 2)"), "s": Text(), "t": Time("date")})

numerals = st.one_of(
    st.integers(-(2**63), 2**63).map(str),
    st.integers(-5, 5).map(str),
    st.decimals(min_value=-100, max_value=100, places=3, allow_nan=False).map(lambda value: f"{value:f}"),
    st.floats(-1e6, 1e6).map(lambda value: f"{value!r}D"),
)
words = st.text(st.sampled_from("ab%_é'\\"), max_size=4).map(
    lambda word: "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"
)
days = st.dates().map(lambda day: f"DATE '{day}'")
predicates = st.one_of(
    st.tuples(st.sampled_from("idc"), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), numerals).map(" ".join),
    st.tuples(st.sampled_from("idc"), numerals, numerals).map(
        lambda three: f"{three[0]} BETWEEN {three[1]} AND {three[2]}"
    ),
    st.tuples(st.sampled_from("idc"), st.lists(numerals, min_size=1, max_size=3)).map(
        lambda two: f"{two[0]} IN ({', '.join(two[1])})"
    ),
    st.tuples(st.sampled_from(["s", "lower(s)"]), st.sampled_from(["=", "<", "LIKE", "ILIKE", "NOT LIKE"]), words).map(
        " ".join
    ),
    st.tuples(st.sampled_from(["startswith", "endswith", "contains"]), words).map(lambda two: f"{two[0]}(s, {two[1]})"),
    st.tuples(st.sampled_from(["=", "<", ">="]), days).map(lambda two: f"t {' '.join(two)}"),
)
expressions = st.lists(predicates, min_size=1, max_size=3).map(" AND ".join)


def outcome(planner: Planner, texts: list[str]) -> list[tuple[str, object]]:
    """Return, for each text, its error or the sizes of its boxes and how many are verified by a program."""
    filled: Filled = planner.fill(pa.array(texts, pa.string()))
    found: list[tuple[str, object]] = []
    verified = {int(box) for program in filled.programs for box in program.boxes}
    for row in range(len(texts)):
        if row in filled.problems:
            found.append((type(filled.problems[row]).__name__, str(filled.problems[row])))
            continue
        boxes = np.flatnonzero(filled.rows == row)
        taken = filled.boxes.take(boxes)
        found.append(("boxes", (len(boxes), taken.axis.tolist(), [int(box) in verified for box in boxes])))
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(expressions, min_size=1, max_size=12))
def test_texts_filled_together_are_texts_filled_one_by_one(texts: list[str]) -> None:
    together = Planner(Axes(SPACE))
    apart = Planner(Axes(SPACE))
    apart.fill(pa.array(texts, pa.string()))  # the same axes under the same numbers
    assert outcome(together, texts) == [outcome(apart, [text])[0] for text in texts]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(expressions, min_size=1, max_size=8), st.lists(st.tuples(*[st.integers(0, 4)] * 5), min_size=1, max_size=8)
)
def test_bulk_and_single_subscriptions_match_alike(texts: list[str], picks: list[tuple[int, ...]]) -> None:
    from datetime import date
    from decimal import Decimal

    import tocsin

    values = {
        "i": [None, 0, -5, 2**63 - 1, -(2**63)],
        "d": [None, 0.5, float("nan"), -1.25, 3.0],
        "c": [None, Decimal("0.50"), Decimal("-5.00"), Decimal("100.00"), Decimal("3.12")],
        "s": [None, "", "ab", "é%", "a'\\b"],
        "t": [None, date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(2020, 2, 29)],
    }
    bulk, single = tocsin.Matcher(SPACE, engine="scan"), tocsin.Matcher(SPACE, engine="scan")
    problems: list[tocsin.Problem] = []
    bulk.subscribe_many(pa.table({"id": range(len(texts)), "expression": texts}), problems=problems)
    for number, text in enumerate(texts):
        try:
            single.subscribe(number, text)
        except TocsinError as error:
            assert [type(error)] == [type(problem.error) for problem in problems if problem.row == number]
    assert list(bulk) == list(single)
    for pick in picks:
        event = {name: values[name][which] for name, which in zip(values, pick, strict=True)}
        assert bulk.match(event) == single.match(event)


def test_a_template_asks_for_the_values_that_shape_it() -> None:
    batch = split_texts(pa.array(["a = 1 + 2"]))
    with pytest.raises(NeedsValueError) as caught:
        Template(batch.templates[0]).parse({})
    assert caught.value.slot == 0
