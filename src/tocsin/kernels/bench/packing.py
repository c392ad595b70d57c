"""A certified lower bound of a set cover: what the cheapest sets that hit every group must cost at least.

Any prices ``y >= 0`` of the groups prove one (weak duality): whatever sets are chosen cost at least the sum of ``y``,
less what the groups of a set sum up to above its own price. Subgradient steps improve the prices; the best are kept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tocsin.kernels.compile import kernel

_INERTIA = 0.3
_PATIENCE = 6
_SLOWER = 0.6

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@kernel
def first_prices(offsets: Int64s, members: Int32s, price: Floats) -> Floats:
    """Return prices of groups to begin with: each set's price shared evenly, and of those shares the least."""
    degree = np.zeros(len(price))
    for member in members:
        degree[member] += 1.0
    found = np.zeros(len(offsets) - 1)
    for group in range(len(found)):
        least = np.inf
        for at in range(offsets[group], offsets[group + 1]):
            least = min(least, price[members[at]] / degree[members[at]])
        found[group] = least if least < np.inf else 0.0
    return found


@kernel
def _proven(offsets: Int64s, members: Int32s, price: Floats, y: Floats, load: Floats) -> float:
    """Return the bound that prices of groups prove; ``load`` becomes what the groups of each set sum up to."""
    load[:] = 0.0
    total = 0.0
    for group in range(len(y)):
        worth = y[group] if offsets[group + 1] > offsets[group] else 0.0
        total += worth
        for at in range(offsets[group], offsets[group + 1]):
            load[members[at]] += worth
    for each in range(len(price)):
        if load[each] > price[each]:
            total += price[each] - load[each]
    return total


@kernel
def lower_bound(offsets: Int64s, members: Int32s, price: Floats, y: Floats, above: float, rounds: int) -> float:
    """Return a lower bound of the cost of any sets that hit all groups; ``y`` holds prices to begin with, afterwards
    those that prove it. Group ``g`` is hit by the sets ``members[offsets[g]:offsets[g + 1]]``; ``above`` is what some
    sets that hit all of them cost. Groups without members are left out."""
    load, slope, best_y = np.zeros(len(price)), np.zeros(len(y)), y.copy()
    best, length, since = 0.0, 1.0, 0
    for _ in range(rounds):
        proven = _proven(offsets, members, price, y, load)
        if proven > best + 1e-6 * best:
            best, since = proven, 0
            best_y[:] = y
        else:
            since += 1
            if since >= _PATIENCE:
                length, since = length * _SLOWER, 0
                y[:] = best_y
                slope[:] = 0.0
                continue
        norm = 0.0
        for group in range(len(y)):
            unmet = 1.0 if offsets[group + 1] > offsets[group] else 0.0
            for at in range(offsets[group], offsets[group + 1]):
                if load[members[at]] > price[members[at]]:
                    unmet -= 1.0
            if y[group] <= 0.0 and unmet < 0.0:
                unmet = 0.0
            slope[group] = (1.0 - _INERTIA) * unmet + _INERTIA * slope[group]
            norm += slope[group] * slope[group]
        if norm == 0.0:
            break
        step = length * max(above - proven, 1e-3 * above) / norm
        for group in range(len(y)):
            y[group] = max(0.0, y[group] + step * slope[group])
    y[:] = best_y
    return best
