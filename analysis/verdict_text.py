"""A verdict and the claims as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.blocks import NONE, Block, percent
from analysis.claims import FAILS, HOLDS, Claim
from analysis.comparison import MIN_RUNS, Comparison
from analysis.formats import as_table
from analysis.interval import CONFIDENCE
from analysis.published import ITEMS
from analysis.verdict import Verdict

_HEADER = ["receiver", "sender", "cut", "eval_data", "ours", "n", "published", "n", "difference", "interval", "verdict"]


def verdict_text(verdict: Verdict) -> str:
    """The cells beside their published values, and what is concluded."""
    name = f"{verdict.experiment} beside {verdict.reference}"
    blocks = [_block(f"{name}: accuracy in %", verdict.accuracy, ranks=False)]
    if verdict.ranks is not None:
        blocks.append(_block(f"{name}: feature rank at the stitch", verdict.ranks, ranks=True))
    return as_table(blocks, [*_notes(verdict), *_conclusion(verdict)])


def claims_text(claims: Sequence[Claim]) -> str:
    """Each claim, its numbers and what became of it."""
    rows = [[claim.name, claim.status] for claim in claims]
    notes = [f"{claim.name}: {claim.statement}. {claim.numbers}." for claim in claims]
    held, failed = (sum(claim.status == status for claim in claims) for status in (HOLDS, FAILS))
    counts = f"Claims: {held} hold, {failed} fail, {len(claims) - held - failed} not measured."
    return as_table([Block("Claims of the paper", ["claim", "status"], [rows], labels=2)], [*notes, counts])


def _block(title: str, comparison: Comparison, ranks: bool) -> Block:
    uncut: list[list[str]] = []
    stitched: list[list[str]] = []
    for row in comparison.table.iter_rows(named=True):
        names = [row["receiver"], row["sender"] or "uncut", row["cut"] or NONE, row["eval_data"]]
        values = [
            _value(row["ours"], row["ours_sd"], ranks),
            str(row["ours_n"]),
            _value(row["published"], row["published_sd"], ranks),
            str(row["published_n"]),
            NONE if row["difference"] is None else f"{row['difference'] * (1 if ranks else 100):+.2f}",
            NONE if row["low"] is None else f"{_value(row['low'], None, ranks)} to {_value(row['high'], None, ranks)}",
            row["verdict"],
        ]
        (stitched if row["sender"] else uncut).append([*names, *values])
    return Block(title, _HEADER, [section for section in (uncut, stitched) if section], labels=4)


def _value(mean: float | None, sd: float | None, ranks: bool) -> str:
    if not ranks or mean is None:
        return percent(mean, sd)
    return f"{mean:.1f}" + ("" if sd is None else f" ±{sd:.1f}")


def _notes(verdict: Verdict) -> Iterator[str]:
    if verdict.differs:
        yield f"NOT THE PUBLISHED SETTING, so nothing is judged: {'; '.join(verdict.differs)}."
    yield "n: runs. ±: standard deviation over runs. difference: ours minus published (accuracy: percentage points)."
    if not verdict.differs:
        pooled = f"{100 * verdict.accuracy.pooled:.2f} points"
        pooled += "" if verdict.ranks is None else f"; of ranks {100 * verdict.ranks.pooled:.0f}% of the published mean"
        yield (
            f"interval: {CONFIDENCE:.0%} prediction interval of the mean of n new runs, Student t; its sd is the "
            f"largest of the cell's own, the pooled one of the stitched cells ({pooled}) and, of accuracies, that of "
            f"counting {ITEMS:,} items. Cells with fewer than {MIN_RUNS} published runs are not judged."
        )
        yield (
            "Cells of a run share base models and fall outside together; the allowed number is that of independent "
            "ones, and chance exceeds it more often than one time in twenty."
        )
    lost = verdict.accuracy.table["lost"].sum()
    for number, text in (
        (lost, "failed or diverged, in no mean; a cell with no other is outside"),
        (verdict.absent, "published without a row here"),
        (verdict.missing, "planned without a result yet"),
    ):
        if number:
            yield f"{number} cell{'s'[: number > 1]} {text}."


def _conclusion(verdict: Verdict) -> Iterator[str]:
    for name, part in (("Accuracy", verdict.accuracy), ("Rank", verdict.ranks)):
        if part is not None and part.judged:
            yield f"{name}: {part.outside} of {part.judged} judged cells outside; chance allows {part.allowed}."
    words = {True: "as published", False: "NOT as published", None: "nothing was judged"}
    yield f"Verdict: {words[verdict.passed]}."
