"""Two sweeps cell by cell: the mean paired difference of what they measure. Or one sweep against published numbers.

python analysis/compare.py results/<sweep A> results/<sweep B> [--unit run]
python analysis/compare.py results/<sweep> --reference smith2025
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import polars as pl

from analysis.blocks import NONE, Block
from analysis.claims import NOT_MEASURED, borne_out, check_claims
from analysis.cli import run
from analysis.formats import as_table
from analysis.load import Results, load
from analysis.measures import Measure, measure_of
from analysis.paired import PairedDifference, paired_difference
from analysis.published import REFERENCES
from analysis.verdict import judge
from analysis.verdict_text import claims_text, verdict_text
from stitching_core.errors import InputError

MATCH = ("run", "sender", "sender_cut", "receiver", "receiver_cut", "fit_data", "eval_data")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the comparison; its exit status is 1 for a sweep that its reference does not bear out."""
    parser = argparse.ArgumentParser(
        description="Mean paired difference of accuracy between two sweeps, A minus B; or one sweep and published ones."
    )
    parser.add_argument("a", help="results/<sweep A>")
    parser.add_argument("b", nargs="?", help="results/<sweep B>")
    parser.add_argument(
        "--reference",
        help=f"published numbers in place of a second sweep ({', '.join(REFERENCES)}); exit status 1 if A is not as "
        "published, if a claim of the paper fails, or if nothing can be judged by either",
    )
    parser.add_argument(
        "--unit", choices=("cell", "run"), default="cell", help="what the interval is over (%(default)s)"
    )
    args = parser.parse_args(argv)
    if (args.b is None) == (args.reference is None):
        raise InputError("compare one sweep with either a second one or --reference; expected exactly one of them")
    if args.reference is not None:
        return _with_reference(load(args.a), args.reference)
    _two_sweeps(args)
    return 0


def _with_reference(results: Results, reference: str) -> int:
    verdict = judge(results, reference)
    claims = [one for one in check_claims({verdict.experiment: results}) if one.status != NOT_MEASURED]
    print(verdict_text(verdict) + (f"\n{claims_text(claims)}" if claims else ""), end="")
    return 0 if borne_out(verdict, claims) else 1


def _two_sweeps(args: argparse.Namespace) -> None:
    """Print the difference on each evaluation data and over all."""
    results_a, results_b = load(args.a), load(args.b)
    measure, other = measure_of(results_a.cells), measure_of(results_b.cells)
    if measure != other:
        raise InputError(f"{args.a} measures {measure.value} and {args.b} {other.value}: they can't be compared")
    (a, merged_a), (b, merged_b) = _values(results_a, measure), _values(results_b, measure)
    if a.join(b, on=MATCH, how="semi", nulls_equal=True).is_empty():
        raise InputError(f"no ok cell of {args.a} matches one of {args.b} on {', '.join(MATCH)}")

    unit = None if args.unit == "cell" else "run"
    evals = pl.concat([a["eval_data"], b["eval_data"]]).unique(maintain_order=True).to_list()
    rows = []
    for name in evals:
        here = pl.col("eval_data").eq_missing(pl.lit(name))
        rows.append(_row(str(name), a.filter(here), b.filter(here), unit, measure))
    header = ["eval_data", "A - B", "95% low", "95% high", f"n ({args.unit}s)", "unmatched in A", "unmatched in B"]
    block = Block(
        f"A = {args.a}, B = {args.b}: "
        + ("accuracy, A minus B, in percentage points" if measure.percent else f"{measure.title}, A minus B"),
        header,
        [rows, [_row("all", a, b, unit, measure)]],
    )
    print(as_table([block], _notes(args.unit, merged_a, merged_b)), end="")


def _values(results: Results, measure: Measure) -> tuple[pl.DataFrame, int]:
    """The measure per match key of the ok cells, and the number of keys that several cells share."""
    ok = results.cells.filter(measure.ok)
    values = ok.group_by(MATCH, maintain_order=True).agg(pl.col(measure.value).mean(), cells=pl.len()).collect()
    return values, values.filter(pl.col("cells") > 1).height


def _row(name: str, a: pl.DataFrame, b: pl.DataFrame, unit: str | None, measure: Measure) -> list[str]:
    found: PairedDifference = paired_difference(a, b, on=MATCH, value=measure.value, unit=unit)
    points = [
        NONE if number != number else f"{100 * number:+.2f}" if measure.percent else f"{number:+.4f}"
        for number in (found.mean, found.low, found.high)
    ]
    unmatched = (one.join(other, on=MATCH, how="anti", nulls_equal=True).height for one, other in ((a, b), (b, a)))
    return [name, *points, str(found.n), *map(str, unmatched)]


def _notes(unit: str, merged_a: int, merged_b: int) -> list[str]:
    notes = [f"Matched on {', '.join(MATCH)}; only ok cells. Interval: Student t over {unit}s."]
    if unit == "cell":
        notes.append(
            "Cells of a run share base models, so the interval is optimistic: it speaks for these models alone."
        )
    for name, merged in (("A", merged_a), ("B", merged_b)):
        if merged:
            verb = "key is the mean" if merged == 1 else "keys are means"
            notes.append(f"{name}: {merged} matched {verb} of several cells that differ in other settings.")
    return notes


if __name__ == "__main__":
    sys.exit(run(main))
