"""The plainest comparisons are read without sqlglot, and as sqlglot reads them."""

from __future__ import annotations

import re
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.dialects.spark import Spark

from tocsin.kernels.language import literals as classes
from tocsin.language.literals import KINDS
from tocsin.language.plain import plain_comparison
from tocsin.language.sql import translated
from tocsin.language.tree import Expression, Operand, Slot

WORDS = {word.upper() for key in Spark.Tokenizer.KEYWORDS for word in re.findall(r"[A-Za-z_]\w*", key)}
LITERALS = {"\x01": "0 ", "\x03": "0 ", "\x05": "0 ", "\x06": "'0' ", "\x02": "0 ", "\x07": "'0' ", "\x10": "'0' "}
BLANKS = st.text(" \n\t", max_size=3)
NAMES = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
    st.sampled_from(sorted(WORDS)).flatmap(lambda word: st.sampled_from([word, word.lower()])),
    st.sampled_from(["a.b", "größe", "`a`", "-a", "a b", "(a", "1a", "a1", "x", "b", "r", "e5", "_", "lower(a)", ""]),
)
SIGNS = st.sampled_from(["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "=>", "=<", "!", "><", "===", "< =", "->"])


def both(name: str, sign: str, literal: str, blanks: tuple[str, ...]) -> tuple[Expression | None, Expression | str]:
    """Return what each way makes of a comparison; an error as its text."""
    template = f"{blanks[0]}{name}{blanks[1]}{sign}{blanks[2]}{literal}{blanks[3]}"

    def operand(number: int, place: int) -> Operand:
        return Slot(number, KINDS[ord(literal)], place=place)

    plain = plain_comparison(template, operand, lambda at: at)
    try:
        marked = template.replace(literal, LITERALS[literal])
        return plain, translated(marked, template, [ord(literal)], operand, lambda at: at)
    except Exception as error:
        return plain, str(error)


@settings(max_examples=1_500, deadline=None)
@given(NAMES, SIGNS, st.sampled_from(sorted(LITERALS)), st.tuples(BLANKS, BLANKS, BLANKS, BLANKS))
def test_what_is_plain_is_what_sqlglot_makes_of_it(
    name: str, sign: str, literal: str, blanks: tuple[str, str, str, str]
) -> None:
    plain, parsed = both(name, sign, literal, blanks)
    if plain is not None:
        assert plain == parsed
        assert plain.field.place == parsed.field.place  # type: ignore[attr-defined, union-attr]
        assert plain.constant.place == parsed.constant.place  # type: ignore[attr-defined, union-attr]


def test_ordinary_comparisons_are_plain() -> None:
    for sign in ("=", "==", "<>", "!=", "<", "<=", ">", ">="):
        for literal in map(chr, (classes.INTEGER, classes.DECIMAL, classes.DOUBLE, classes.PLAIN)):
            plain, parsed = both("price_1", sign, literal, ("", " ", " ", ""))
            assert plain == parsed and plain is not None


def test_plain_comparisons_need_no_sqlglot() -> None:
    script = (
        "import sys, tocsin\n"
        "matcher = tocsin.Matcher(tocsin.Space({'price': tocsin.Number(), 'city': tocsin.Text()}))\n"
        "matcher.subscribe('cheap', \"price <= 400 AND city = 'NYC'\")\n"
        "assert matcher.match({'price': 350, 'city': 'NYC'}) == ['cheap']\n"
        "print('sqlglot' in sys.modules)\n"
        "matcher.subscribe('late', 'price BETWEEN 1 AND 400')\n"
        "print(sorted(matcher.match({'price': 350, 'city': 'NYC'})))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    assert run.stdout.splitlines() == ["False", "['cheap', 'late']"]
