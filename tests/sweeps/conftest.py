"""One Ray cluster for all tests that need one, and sweeps small enough to run many of them."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from sweeps import console, full_grid

SMALL = [
    "zoo.arch=resnet18_eighth",
    "zoo.training.epochs=2",
    "zoo.allow_unlearned=true",
    "data.train_items=160",
    "data.noise_train_items=160",
    "data.noise_test_items=60",
    "protocol.epochs=2",
    "grid.senders=[digit,noise]",
    "grid.receivers=[digit]",
    "grid.cuts=[layer3,layer4]",
    "grid.runs=1",
    "tracking=none",
]


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """A local cluster of two CPUs, without a dashboard. Sweeps with ``cluster=auto`` join it."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    import sweeps.cluster  # noqa: F401  # sets what Ray reads from the environment

    ray.init(
        address="local",
        num_cpus=2,
        num_gpus=0,
        include_dashboard=False,
        object_store_memory=256 * 2**20,
        log_to_driver=False,
    )
    yield
    ray.shutdown()


@dataclass(frozen=True)
class Place:
    """A folder in which sweeps are run as from the command line."""

    folder: Path
    run: Callable[..., int]

    def cells(self, name: str) -> pl.DataFrame:
        """The ledger's rows of a sweep, all parts, in an order that depends on the cells alone."""
        return pl.read_parquet(self.folder / f"results/{name}/cells/*.parquet").sort("cell_id", "eval_data")


@pytest.fixture(scope="module")
def place(ray_cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """``place.run(key=value, ...)`` runs full_grid.py's main on the small sweep and returns its exit status."""
    folder = tmp_path_factory.mktemp("place")
    before, arguments = Path.cwd(), sys.argv

    def run(*overrides: str) -> int:
        sys.argv = ["full_grid.py", *SMALL, *overrides]
        return console.run(full_grid.main, full_grid.USAGE)

    os.chdir(folder)
    yield Place(folder, run)
    os.chdir(before)
    sys.argv = arguments
