"""The claims of Smith et al. 2025, each as a check that a sweep of any size can pass or fail.

Criteria were fixed on the published numbers and on what a claim says, not on results of this project. Margins are one
percentage point of accuracy (two between senders), on means over cuts and runs: with the one to three runs of a sweep
an interval would decide nothing, so the spread over runs is shown instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from analysis.claim_checks import Checked, misaligned_sender, noise, random_sender, rank, self_stitch
from analysis.load import Results
from analysis.verdict import Verdict

HOLDS, FAILS, NOT_MEASURED = "holds", "fails", "not measured"


@dataclass(frozen=True)
class Claim:
    """One claim and what became of it.

    Attributes:
        name: a word for it.
        statement: the claim with its criterion.
        numbers: what was measured, as text.
        status: "holds", "fails" or "not measured".
    """

    name: str
    statement: str
    numbers: str
    status: str


# name: experiment, the claim with its criterion, and the check
CLAIMS: dict[str, tuple[str, str, Callable[[Results], Checked]]] = {
    "misaligned sender": (
        "2e",
        "on correlated data no sender that goes by colour is more than 1 point worse than the uncut digit receiver",
        misaligned_sender,
    ),
    "random sender": (
        "2m",
        "on correlated data an untrained sender is not more than 1 point worse than the uncut digit receiver",
        random_sender,
    ),
    "noise": ("1f", "points of noise are classified at 99.5% or more at every cut", noise),
    "self-stitch": (
        "2e",
        "on decorrelated data digit stitched into itself is not more than 1 point worse than uncut",
        self_stitch,
    ),
    "rank": (
        "2e",
        "in every run the mean rank at the stitch, over layer1 to layer3, of every sender that goes by colour is below "
        "that of every sender that goes by digit, though none of the former is more than 2 points less accurate",
        rank,
    ),
}


def check_claims(results: Mapping[str, Results]) -> list[Claim]:
    """Check every claim that the sweeps at hand have cells for.

    Args:
        results: sweeps by bare experiment id: `1f`, `2e` and `2m` are read.

    Returns:
        All claims, in the order of ``CLAIMS``.
    """
    claims = []
    for name, (experiment, statement, check) in CLAIMS.items():
        met, numbers = check(results[experiment]) if experiment in results else (None, f"no sweep of {experiment}")
        status = NOT_MEASURED if met is None else HOLDS if met else FAILS
        claims.append(Claim(name, statement, numbers, status))
    return claims


def borne_out(verdict: Verdict, claims: Sequence[Claim]) -> bool:
    """Whether something was judged or measured, and nothing of it speaks against the reference."""
    statuses = [claim.status for claim in claims]
    return verdict.passed is not False and FAILS not in statuses and (bool(verdict.passed) or HOLDS in statuses)
