"""Stitches every sender into every receiver at every cut of a grid, and shows the stitchability table.

python sweeps/full_grid.py [group=option ...] [key=value ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

from analysis.formats import as_table
from analysis.load import load
from analysis.measures import measure_of
from analysis.stitchability import notes_of, people_blocks
from analysis.tables import stitchability
from sweeps import console
from sweeps.config import GROUPS, load_config, options
from sweeps.estimate import describe
from sweeps.progress import say
from sweeps.run import planned, run_sweep
from sweeps.schema import SweepConfig

USAGE = f"""{__doc__}
Groups, each a folder of tune_configs/ whose files say what the keys mean:
{chr(10).join(f"  {group:<11} {', '.join(options(group))}" for group in GROUPS)}
Keys: name, seed, results_dir, plan_only, plugins, and group.key for the keys of a group, for example
  python sweeps/full_grid.py plan_only=true grid=all_cuts
  python sweeps/full_grid.py name=slow protocol.learning_rate=0.01 protocol.epochs=40 grid.cuts=[layer1,layer2]
  python sweeps/full_grid.py experiment=2e data.root=FOLDER
Exit status: 0 done, 1 a cell failed, 2 bad input, 130 interrupted."""


def main(arguments: list[str]) -> int:
    """Runs a sweep; returns the exit status."""
    asked = planned(load_config(arguments))
    if asked.config.plan_only:
        say(describe(asked.config, asked.plan))
        return console.OK
    folder, outcome = run_sweep(asked)
    show(asked.config, folder)
    return console.CELLS_FAILED if outcome and outcome.failed else console.OK


def show(config: SweepConfig, folder: Path) -> None:
    """The table, what was written and what to type next."""
    results = load(folder)
    table = stitchability(results)
    notes = notes_of(results, table)
    say(as_table(people_blocks(results, table), notes))
    say("")
    say(f"Results   {folder}/ (cells/, predictions/, models.parquet, stitchability.csv)")
    say(f"Pictures  {folder}/figures/")
    say("Next      python analysis/stitchability.py " + f"{folder} --by receiver,sender,eval_data")
    value = measure_of(results.cells).value
    say(f"          python analysis/query.py {folder} 'SELECT sender, AVG({value}) FROM cells GROUP BY sender'")
    if config.tracking.enabled and not config.tracking.uri:
        say("          make ui      # the runs in MLflow, on http://127.0.0.1:5000")
    say("          python sweeps/full_grid.py plan_only=true experiment=2e    # the paper's first experiment")


if __name__ == "__main__":
    sys.exit(console.run(main, USAGE))
