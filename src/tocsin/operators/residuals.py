"""What is left of a box to verify, as numbers that are equal where the same is left."""

from __future__ import annotations

import numpy as np

from tocsin.index.boxes import Int32s
from tocsin.operators.programs import Programs


def residual_numbers(programs: Programs, wanted: Int32s) -> Int32s:
    """Return for each of these programs (-1 for none) a number from 0 on, the same for programs that say the same step
    by step; -1 for none. Programs that mean the same in other words may get different ones.

    >>> residual_numbers(Programs(), np.array([-1, -1], np.int32)).tolist()
    [-1, -1]
    """
    arrays = programs.to_arrays()
    spans = arrays["skeleton_offsets"]
    numbers: dict[bytes, int] = {}
    of_program: dict[int, int] = {}
    for program in np.unique(wanted[wanted >= 0]).tolist():
        skeleton = int(arrays["program_skeleton"][program])
        first = int(arrays["program_leaf"][program])
        leaves = slice(first, first + int(spans[skeleton + 1] - spans[skeleton]))
        bounds = arrays["leaf_offsets"][first : leaves.stop + 1]
        inside = slice(int(bounds[0]), int(bounds[-1])) if len(bounds) else slice(0, 0)
        steps = slice(int(spans[skeleton]), int(spans[skeleton + 1]))
        said = b"|".join(
            part.tobytes()
            for part in (
                arrays["skeleton_start"][skeleton : skeleton + 1],
                *(arrays[name][steps] for name in ("operation", "axis", "on_true", "on_false")),
                arrays["leaf_atom"][leaves],
                np.diff(bounds),
                arrays["low"][inside],
                arrays["high"][inside],
            )
        )
        of_program[program] = numbers.setdefault(said, len(numbers))
    return np.array([of_program.get(program, -1) for program in wanted.tolist()], np.int32)
