"""Changes to an index: a new segment for what was subscribed, dead ids for what went, merges that keep segments few.

This module must not import pyspark: it runs where the files are.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.errors import DuplicateSubscriptionError, SubscriptionError
from tocsin.spark.manifest import Manifest, Segment, commit, succeed
from tocsin.spark.segments import bury, read_subscriptions, write_segment

MOST_SEGMENTS = 8
"""With more segments than this, the small ones are merged: every event asks every segment."""


def apply_changes(
    path: str, manifest: Manifest, changes: pa.Table, all_or_none: bool, applied: dict[str, int]
) -> dict[str, Any]:
    """Commit the next version of an index, with these changes; say what was added and what was refused."""
    ids = changes["id"].combine_chunks()
    if ids.null_count:
        raise SubscriptionError(f"{ids.null_count} rows of the changes have no id")
    counts = ids.value_counts()
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        shown = ", ".join(repr(id) for id in twice.slice(0, 5).to_pylist())
        raise DuplicateSubscriptionError(
            f"several changes of one id: {shown}; name the column that orders them, order='...'"
        )
    space = manifest.read_space()
    leaving = pc.is_null(changes["expression"])
    joining = changes.filter(pc.invert(leaving))
    written = write_segment(path, joining, space, manifest.engine) if len(joining) else None
    if written and written.refused and all_or_none:
        raise SubscriptionError(
            f"{written.refused} of the changes are bad; none was made\n" + "\n".join(written.reasons)
        )
    fresh = written.segment if written else None
    gone = changes.filter(leaving)["id"].combine_chunks()
    if fresh:
        gone = pa.concat_arrays([gone, read_subscriptions(path, fresh)["id"].combine_chunks()])
    kept = [bury(path, segment, gone) for segment in manifest.segments] if len(gone) else list(manifest.segments)
    segments = [segment for segment in [*kept, *([fresh] if fresh else [])] if segment.alive]
    if len(segments) > MOST_SEGMENTS or any(segment.died > segment.alive for segment in segments):
        segments = _merged(path, segments, manifest)
    version = succeed(
        manifest,
        segments=tuple(segments),
        tested=tuple(sorted({*manifest.tested, *(written.tested if written else ())})),
        quarantine=(*manifest.quarantine, *([written.quarantine] if written and written.quarantine else [])),
        refused=manifest.refused + (written.refused if written else 0),
        applied=manifest.applied | applied,
    )
    commit(path, version)
    return {
        "manifest": version.to_json(),
        "added": fresh.subscriptions if fresh else 0,
        "refused": written.refused if written else 0,
        "reasons": list(written.reasons) if written else [],
    }


def _merged(path: str, segments: list[Segment], manifest: Manifest) -> list[Segment]:
    """Return fewer segments: one that holds most subscriptions stays unless half dead, the others become one."""
    total = sum(segment.alive for segment in segments)
    stays = [segment for segment in segments if 2 * segment.alive > total and segment.died <= segment.alive]
    rest = [segment for segment in segments if segment not in stays]
    if not rest:
        return segments
    table = pa.concat_tables([read_subscriptions(path, segment) for segment in rest])
    made = write_segment(path, table, manifest.read_space(), manifest.engine).segment
    return [*stays, *([made] if made else [])]
