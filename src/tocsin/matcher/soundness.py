"""Whether the arrays of saved subscriptions name only slots and box numbers that are there; see also
`index/segments/soundness.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tocsin.kernels.checks import check, check_length, check_rising, check_within


def check_subscriptions(arrays: Mapping[str, npt.NDArray[Any]], count: int, texts: pa.Array) -> None:
    """Refuse arrays of so many subscriptions that name slots and numbers which are not there."""
    numbers, offsets = len(arrays["owner"]), arrays["others_offsets"]
    check(pa.types.is_large_string(texts.type) and not texts.null_count, "texts of another kind")
    check_length("texts", len(texts), count)
    check_length("first boxes", len(arrays["first"]), count)
    check_within("first boxes", arrays["first"], -1, numbers)
    check_within("owners of boxes", arrays["owner"], -1, count)
    check_within("further boxes", arrays["others"], 0, numbers)
    check(len(offsets) in (1, count + 1), "further boxes of others than those who subscribed")
    check_rising("further boxes", offsets, 0, len(arrays["others"]))
    for name in ("owner", "program", "condition", "first", "others"):
        check(arrays[name].dtype == np.int32, f"{name} of another kind")
    for name in ("program", "condition"):
        check_length(f"{name}s of boxes", len(arrays[name]), numbers)
