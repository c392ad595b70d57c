"""Moments that readers hold: what changes later does not show to them."""

from __future__ import annotations

from typing import NamedTuple

from tocsin.index.boxes import Int32s


class View(NamedTuple):
    """A moment: changes after ``epoch`` do not show, and of the boxes then replaced but not yet gone, ``dying``
    (ascending), none does."""

    epoch: int
    dying: Int32s


class Dying(NamedTuple):
    """Boxes that no reader sees who began in epoch ``since`` or later, and the slots that have no others."""

    since: int
    numbers: Int32s
    slots: Int32s
