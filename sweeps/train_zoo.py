"""Trains the base models of a zoo without stitching any, and shows how good each is on every data variant.

python sweeps/train_zoo.py [group=option ...] [key=value ...]
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import polars as pl
import ray

from analysis.blocks import Block, percent
from analysis.formats import as_table
from stitching_core import record
from stitching_core.errors import InputError
from stitching_core.models.store import Zoo
from sweeps import console
from sweeps.checks import check
from sweeps.cluster import start
from sweeps.config import load_config
from sweeps.estimate import base_seconds, items_of
from sweeps.members import find_members, incomplete, model_rows
from sweeps.plan import recipe
from sweeps.plugins import activate, read_plugins
from sweeps.prepare import make_setting
from sweeps.progress import clock, say
from sweeps.worker import measurable
from sweeps.zoo import complete_zoo

USAGE = f"""{__doc__}
Groups and keys are those of sweeps/full_grid.py; zoo, data, seed and grid.runs are what matters here.
Exit status: 0 done, 2 bad input, 130 interrupted."""


def main(arguments: list[str]) -> int:
    """Trains what the zoo does not have yet; returns the exit status."""
    config = load_config(arguments)
    plugins = read_plugins(config.plugins)
    activate(plugins)
    check(config)
    models, seeds = config.zoo.models, range(config.seed, config.seed + config.grid.runs)
    if not models:
        raise InputError("zoo.models is empty; it needs at least one model")
    recipes = [recipe(config, name, seed) for seed in seeds for name in models]
    if config.plan_only:
        items = items_of(config)
        time = f", about {clock(base_seconds(config, set(models), len(seeds), items)[1])} of one core" if items else ""
        trained = sum(one.kind == record.TRAINED for one in recipes)
        say(f"{trained} base models to train if none is there yet{time}")
        return console.OK
    setting = make_setting(config, plugins)
    asked = measurable(setting.source)
    zoo = Zoo(Path(config.zoo.dir))
    members = find_members(zoo, recipes, setting, asked)
    if any(incomplete(member, asked, setting) for member in members.values()):
        with start(config.cluster) as cluster:
            say(cluster.description)
            shared = dataclasses.replace(
                setting, source=ray.put(setting.source), sequences={k: ray.put(v) for k, v in setting.sequences.items()}
            )
            complete_zoo(zoo, members, shared, asked, cluster.per_task)
    rows = pl.DataFrame(model_rows(config.name, members), infer_schema_length=None)
    header = ["model", "seed", "learned", *asked]
    lines = [
        [name, str(seed), {True: "yes", False: "NO", None: "-"}[of[0, "learned"]]]
        + [percent(dict(of.select("eval_data", "accuracy").iter_rows()).get(variant)) for variant in asked]
        for (name, seed), of in rows.group_by("model", "seed", maintain_order=True)
    ]
    say(as_table([Block("Uncut accuracy in % on each variant's test set", header, [lines], labels=1)], []))
    return console.OK


if __name__ == "__main__":
    sys.exit(console.run(main, USAGE))
