"""What has been done of a batch, told from its manifest and the logs of its runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from align.batch.journal import outcomes
from align.batch.lock import holder
from align.batch.merge import ranges

if TYPE_CHECKING:
    from align.batch.plan import Plan


def status(plan: Plan) -> dict[str, Any]:
    """The state as JSON holds it: counts of shards and pairs, statuses, failed shards, and the runs at work."""
    ended = outcomes(plan)
    done = [outcome for outcome in ended.values() if outcome.error is None]
    statuses = sum((Counter(outcome.statuses) for outcome in done), Counter[str]())
    at_work = []
    for path in sorted((plan.folder / "runs").glob("*.lock")):
        if (who := holder(path)) is not None:
            first, last = map(int, path.stem.split("-"))
            at_work.append({"shards": f"{first}-{last}", **who})
    return {
        "fingerprint": plan.fingerprint,
        "signature": plan.signature,
        "shards": {"total": len(plan.shards), "done": len(done)},
        "pairs": {"total": plan.pairs, "done": sum(outcome.pairs for outcome in done)},
        "seconds": round(sum(outcome.seconds for outcome in done), 3),
        "statuses": dict(sorted(statuses.items())),
        "failed": {number: ended[number].error for number in sorted(ended) if ended[number].error is not None},
        "open": ranges(n for n in range(1, len(plan.shards) + 1) if n not in ended),
        "running": at_work,
    }


def status_lines(state: dict[str, Any]) -> list[str]:
    """`status` for people."""
    shards, pairs = state["shards"], state["pairs"]
    speed = f"{pairs['done'] / state['seconds']:,.0f} pairs/s a worker" if state["seconds"] else "no speed yet"
    counts = ", ".join(f"{count:,} {name}" for name, count in state["statuses"].items())
    running = (
        f"shards {run['shards']}: at work on {run.get('host')}, process {run.get('pid')}, since {run.get('started')}"
        for run in state["running"]
    )
    return [
        f"{pairs['done']:,} of {pairs['total']:,} pairs, {shards['done']:,} of {shards['total']:,} shards, {speed}",
        *([f"statuses: {counts}"] if counts else []),
        *([f"not begun or at work: {state['open']}"] if state["open"] else []),
        *(f"shard {number} failed: {error}" for number, error in state["failed"].items()),
        *running,
    ]
