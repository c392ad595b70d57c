"""Changes to an index: a new segment for what was subscribed, dead ids for what went, merges that keep segments few.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.errors import DuplicateSubscriptionError, SubscriptionError
from tocsin.spark.manifest import Manifest, Segment, commit, new_identity, read_manifest, succeed
from tocsin.spark.partition import shards_of
from tocsin.spark.segments import Written, bury, discard, read_subscriptions, write_segment

LARGE = 200_000
"""Subscriptions of a segment that stays as it is when small ones are merged: building it anew would take seconds."""

UNORDERED = "unordered"
"""The column of changes that says whether their order is missing."""

MOST_SEGMENTS = 8
"""With more segments than this in a shard, the small ones are merged: every event asks every segment."""


def apply_changes(
    path: str, manifest: Manifest, changes: pa.Table, all_or_none: bool, applied: dict[str, int]
) -> dict[str, Any]:
    """Commit the next version of an index, with these changes; say what was added and what was refused.

    Changes that were put in order have the column ``UNORDERED`` as well.
    """
    ordered = UNORDERED in changes.column_names
    if ordered and (missing := pc.sum(changes[UNORDERED]).as_py()):
        raise SubscriptionError(f"{missing} ids have changes that are NULL in the column which orders them")
    ids = changes["id"].combine_chunks()
    if ids.null_count:
        raise SubscriptionError(f"{ids.null_count} rows of the changes have no id")
    counts = ids.value_counts()
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        shown = ", ".join(repr(id) for id in twice.slice(0, 5).to_pylist())
        raise DuplicateSubscriptionError(
            f"several changes of one id and one order: {shown}; the column is to say which is the last"
            if ordered
            else f"several changes of one id: {shown}; name the column that orders them, order='...'"
        )
    prefix = f"{new_identity()}-"
    try:
        return _applied(path, manifest, changes.select(["id", "expression"]), all_or_none, applied, prefix)
    except BaseException:
        discard(path, prefix)
        raise


def _applied(
    path: str, manifest: Manifest, changes: pa.Table, all_or_none: bool, applied: dict[str, int], prefix: str
) -> dict[str, Any]:
    """Commit the next version; all that is written for it has a name that begins with ``prefix``."""
    leaving = pc.is_null(changes["expression"])
    written = _written(path, changes.filter(pc.invert(leaving)), manifest, prefix)
    refused = sum(each.refused for each in written)
    reasons = [reason for each in written for reason in each.reasons][:5]
    if refused and all_or_none:
        raise SubscriptionError(f"{refused} of the changes are bad; none was made\n" + "\n".join(reasons))
    fresh = [each.segment for each in written if each.segment]
    gone = pa.concat_arrays(
        [
            changes.filter(leaving)["id"].combine_chunks(),
            *(read_subscriptions(path, segment)["id"].combine_chunks() for segment in fresh),
        ]
    )
    kept = (
        [bury(path, segment, gone, prefix) for segment in manifest.segments] if len(gone) else list(manifest.segments)
    )
    version = succeed(
        manifest,
        segments=tuple(_tidied(path, [segment for segment in [*kept, *fresh] if segment.alive], manifest, prefix)),
        tested=tuple(sorted({*manifest.tested, *(name for each in written for name in each.tested)})),
        operands=tuple(sorted({*manifest.operands, *(name for each in written for name in each.operands)})),
        quarantine=(*manifest.quarantine, *(each.quarantine for each in written if each.quarantine)),
        refused=manifest.refused + refused,
        applied=manifest.applied | applied,
    )
    read_manifest(path, *manifest.pin)  # another index may have taken its place
    commit(path, version)
    return {
        "manifest": version.to_json(),
        "added": sum(segment.subscriptions for segment in fresh),
        "refused": refused,
        "reasons": reasons,
    }


def _written(path: str, joining: pa.Table, manifest: Manifest, prefix: str) -> list[Written]:
    """Write what is subscribed as a segment of each shard that gets some of it."""
    if not len(joining):
        return []
    space = manifest.read_space()
    if manifest.tree is None:
        return [write_segment(path, joining, space, manifest.engine, prefix=prefix)]
    shard_of = pa.array(shards_of(manifest.tree, space, joining["expression"].combine_chunks()))
    return [
        write_segment(
            path, joining.filter(pc.equal(shard_of, shard)), space, manifest.engine, shard=shard, prefix=prefix
        )
        for shard in shard_of.unique().to_pylist()
    ]


def _tidied(path: str, segments: list[Segment], manifest: Manifest, prefix: str) -> list[Segment]:
    """Return the segments, merged in each shard where they are many or half dead."""
    tidied = []
    for shard in sorted({segment.shard for segment in segments}):
        held = [segment for segment in segments if segment.shard == shard]
        if len(held) > _most(held) or any(segment.died > segment.alive for segment in held):
            held = _merged(path, held, manifest, prefix)
        tidied += held
    return tidied


def _most(segments: list[Segment]) -> int:
    """Return how many segments are not too many: the large ones that a parallel build made do not count."""
    return MOST_SEGMENTS + sum(segment.subscriptions >= LARGE for segment in segments)


def _merged(path: str, segments: list[Segment], manifest: Manifest, prefix: str) -> list[Segment]:
    """Return fewer segments: large ones and one that holds most subscriptions stay unless half dead, the others become
    one."""
    total = sum(segment.alive for segment in segments)
    stays = [
        segment
        for segment in segments
        if (2 * segment.alive > total or segment.subscriptions >= LARGE) and segment.died <= segment.alive
    ]
    rest = [segment for segment in segments if segment not in stays]
    if not rest:
        return segments
    table = pa.concat_tables([read_subscriptions(path, segment) for segment in rest])
    shard = None if manifest.tree is None else segments[0].shard
    made = write_segment(path, table, manifest.read_space(), manifest.engine, shard=shard, prefix=prefix).segment
    return [*stays, *([made] if made else [])]
