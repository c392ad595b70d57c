"""Words: found one by one and many at a time, however they came in."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.space.words import Words


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.text(max_size=10), st.integers(0, 2**40), max_size=8), min_size=1, max_size=5),
    st.data(),
)
def test_words_are_found_as_in_a_dictionary(batches: list[dict[str, int]], data: st.DataObject) -> None:
    words, held = Words(batches[0]), dict(batches[0])
    for batch in batches[1:]:
        fresh = {word: number for word, number in batch.items() if word not in held}
        words, held = words.with_words(fresh), held | fresh
    asked = data.draw(st.lists(st.text(max_size=10) | st.sampled_from([*held, ""])))
    for kind in (pa.string(), pa.large_string()):
        found = words.find(pa.array(["x", *asked, "y"], kind).slice(1, len(asked)))
        assert found.tolist() == [held.get(word, -1) for word in asked]


def test_many_new_words_are_sorted_in() -> None:
    words = Words({"a": 1, "é": 2})
    for start in range(0, 3000, 100):
        words = words.with_words({f"w{number}": number for number in range(start, start + 100)})
    assert words.find(pa.array(["a", "é", "w0", "w2999", "w3000"])).tolist() == [1, 2, 0, 2999, -1]
