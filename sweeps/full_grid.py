"""Stitches every sender into every receiver at every cut of a grid, and shows the stitchability table.

python sweeps/full_grid.py [group=option ...] [key=value ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

from analysis.blocks import reading_notes
from analysis.formats import as_table
from analysis.load import load
from analysis.stitchability import people_blocks
from analysis.tables import DEFAULT_BY, averaged_over, stitchability
from sweeps import console
from sweeps.checks import check
from sweeps.config import GROUPS, load_config, options
from sweeps.estimate import describe
from sweeps.level import bring_level
from sweeps.members import refuse_unlearned
from sweeps.plan import make_plan
from sweeps.plugins import activate, read_plugins
from sweeps.prepare import check_cuts, is_level, prepare
from sweeps.progress import say
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
    config = load_config(arguments)
    plugins = read_plugins(config.plugins)
    activate(plugins)
    check(config)
    plan = make_plan(config)
    if config.plan_only:
        say(describe(config, plan))
        return console.OK
    sweep = prepare(config, plan, plugins)
    if not config.zoo.allow_unlearned:
        refuse_unlearned(sweep.members)
    level = is_level(sweep)
    if not level:
        check_cuts(sweep)
        from sweeps import cluster, execute  # import ray, which a finished sweep does not need

        cluster.check_before(config.cluster)
    with sweep.ledger.lock():
        if level:
            say(f"all {plan.height} cells of {sweep.ledger.folder} are finished: nothing to train")
            outcome = bring_level(sweep)
        else:
            say(f"{plan.height} cells -> {sweep.ledger.folder}")
            sweep.ledger.clean()
            outcome = execute.execute(sweep)
    show(config, sweep.ledger.folder)
    if outcome and outcome.problem:
        say(f"MLflow lacks {outcome.behind} runs ({outcome.problem}); the same command brings it level")
    return console.CELLS_FAILED if outcome and outcome.failed else console.OK


def show(config: SweepConfig, folder: Path) -> None:
    """The table, what was written and what to type next."""
    results = load(folder)
    table = stitchability(results)
    notes = reading_notes(table, averaged_over(results.cells, DEFAULT_BY), results.missing)
    say(as_table(people_blocks(results, table), notes))
    say("")
    say(f"Results   {folder}/ (cells/, predictions/, models.parquet, stitchability.csv)")
    say(f"Pictures  {folder}/figures/")
    say("Next      python analysis/stitchability.py " + f"{folder} --by receiver,sender,eval_data")
    say(f"          python analysis/query.py {folder} 'SELECT sender, AVG(accuracy) FROM cells GROUP BY sender'")
    if config.tracking.enabled and not config.tracking.uri:
        say("          make ui      # the runs in MLflow, on http://127.0.0.1:5000")
    say("          python sweeps/full_grid.py plan_only=true experiment=2e    # the paper's first experiment")


if __name__ == "__main__":
    sys.exit(console.run(main, USAGE))
