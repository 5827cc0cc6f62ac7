"""Runs experiments of Smith et al. 2025 and says how their results compare with the published ones.

python sweeps/reproduce.py experiment=2e|...|all [scale=full|small] [group=option ...] [key=value ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

from analysis.claims import CLAIMS, FAILS, check_claims
from analysis.load import Results, load
from analysis.published import accuracies
from analysis.verdict import judge
from analysis.verdict_text import claims_text, verdict_text
from stitching_core.errors import InputError
from sweeps import console
from sweeps.config import load_config, options
from sweeps.estimate import describe
from sweeps.progress import say
from sweeps.run import Planned, planned, run_sweep

REFERENCE, ALL, SMALL = "smith2025", "all", "small"
PUBLISHED = sorted(accuracies(REFERENCE)["experiment"].unique())
CLAIMED = sorted({experiment for experiment, _, _ in CLAIMS.values()})
IDS = [name.removeprefix(f"{REFERENCE}_") for name in options("experiment") if name.startswith(REFERENCE)]

USAGE = f"""{__doc__}
Experiments: {", ".join(IDS)}; all is every one that has published numbers ({", ".join(PUBLISHED)}),
with scale=small those that the claims are about ({", ".join(CLAIMED)}).
scale=full judges each cell by the published runs, scale=small (sized for 2 cores) the paper's claims. For example
  python sweeps/reproduce.py experiment=2e data.root=FOLDER
  python sweeps/reproduce.py experiment=all scale=small data.root=FOLDER
Groups and keys are those of sweeps/full_grid.py. A sweep that is finished already is judged at once.
Exit status: 0 done, 1 a verdict or a claim against the paper, or a cell that failed, 2 bad input, 130 interrupted."""


def main(arguments: list[str]) -> int:
    """Runs and judges; returns the exit status."""
    asked = plans(arguments)
    if any(one.config.plan_only for one in asked.values()):
        say("\n".join(describe(one.config, one.plan) for one in asked.values()))
        return console.OK
    found: dict[str, Results] = {}
    good = True
    for name, one in asked.items():
        try:
            folder, outcome = run_sweep(one)
        except InputError as error:
            if len(asked) == 1:
                raise
            say(f"{name} could not be run: {error}")  # the others are worth their hours all the same
            good = False
            continue
        found[name] = load(folder)
        good &= not (outcome and outcome.failed)
        if one.config.scale != SMALL:
            good &= judged(found[name], folder)
    if found and all(one.config.scale == SMALL for one in asked.values()):
        good &= claimed(found, Path(next(iter(asked.values())).config.results_dir))
    return console.OK if good else console.CELLS_FAILED


def plans(arguments: list[str]) -> dict[str, Planned]:
    """The experiments asked for by their bare ids, all checked before the first is run.

    Raises:
        InputError: no experiment, an unknown one, or anything that can't be configured.
    """
    given = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    asked = given.get("experiment", "").removeprefix(f"{REFERENCE}_")
    if asked not in (ALL, *IDS):
        what = f"experiment={given['experiment']} is unknown" if "experiment" in given else "experiment has no value"
        raise InputError(f"{what}; it may be all, {', '.join(IDS)}")
    if asked == ALL and "name" in given:
        raise InputError(f"name={given['name']} can't be the folder of all experiments; each has its own")
    rest = [argument for argument in arguments if not argument.startswith("experiment=")]
    every = CLAIMED if given.get("scale") == SMALL else PUBLISHED
    ids = [name for name in every if name in IDS] if asked == ALL else [asked]
    return {name: planned(load_config([f"experiment={REFERENCE}_{name}", *rest])) for name in ids}


def judged(results: Results, folder: Path) -> bool:
    """Prints and keeps the verdict on each cell; False if more are outside than chance allows."""
    verdict = judge(results, REFERENCE)
    text = verdict_text(verdict)
    (folder / "verdict.txt").write_text(text)
    say(text)
    return verdict.passed is not False  # None: nothing was judged, and the text says why


def claimed(found: dict[str, Results], home: Path) -> bool:
    """Prints and keeps the verdict on each of the paper's claims; False if one of them fails."""
    claims = check_claims(found)
    text = claims_text(claims)
    (home / f"claims_{REFERENCE}_{SMALL}.txt").write_text(text)
    say(text)
    return all(claim.status != FAILS for claim in claims)


if __name__ == "__main__":
    sys.exit(console.run(main, USAGE))
