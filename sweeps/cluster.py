"""The Ray cluster of a sweep: the one that is there, or one of this machine's own."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")  # half of Tune's cost a trial; the ledger has it all
os.environ.setdefault("TUNE_DISABLE_SIGINT_HANDLER", "1")  # Ctrl-C ends the sweep; Tune would end as if it were done
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S", "0")

import ray
import torch

from stitching_core.errors import InputError
from sweeps.progress import say
from sweeps.schema import ClusterConfig


@dataclass(frozen=True)
class Cluster:
    """What there is to work on.

    Attributes:
        description: one line for the user.
        slots: blocks that can train at the same time.
        per_block: resources of a block or of a base training, as Tune and Ray name them.
    """

    description: str
    slots: int
    per_block: dict[str, float]

    @property
    def per_task(self) -> dict[str, float]:
        """The same for a Ray task."""
        return {"num_cpus": self.per_block["CPU"], "num_gpus": self.per_block.get("GPU", 0)}


@contextmanager
def start(config: ClusterConfig) -> Iterator[Cluster]:
    """Connects to a cluster, or starts one, and lets go of it at the end. No dashboard is started.

    ``auto`` takes the cluster that this process is connected to, else the one that RAY_ADDRESS names, else one that
    runs on this machine, else starts a local one.
    """
    where = "a cluster of its own on this machine"
    if config.mode == "auto" and ray.is_initialized():
        yield describe(config, "the cluster that this process is connected to", ray.cluster_resources())
        return
    if config.mode == "auto" and os.environ.get("RAY_ADDRESS"):
        check_address(os.environ["RAY_ADDRESS"])
        ray.init(address=os.environ["RAY_ADDRESS"], **_QUIET)
        where = f"the cluster at RAY_ADDRESS={os.environ['RAY_ADDRESS']}"
    elif config.mode == "auto" and _join_running():
        where = "the cluster that runs on this machine (cluster=local makes one of its own)"
    else:
        ray.init(
            address="local",
            num_cpus=config.cpus or available_cpus(),
            num_gpus=config.gpus,
            object_store_memory=config.object_store_mib * 2**20,
            include_dashboard=False,
            **_QUIET,
        )
    try:
        yield _wait(config, where)
    finally:
        ray.shutdown()


# what workers print is not ours to show: their errors come back as rows
_QUIET: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}


def _wait(config: ClusterConfig, where: str) -> Cluster:
    """What there is, once there is room for the blocks that the configuration waits for."""
    started = time.monotonic()
    while True:
        cluster = describe(config, where, ray.cluster_resources())
        if cluster.slots >= config.wait_slots or config.wait_seconds == 0:
            return cluster
        if time.monotonic() - started > config.wait_seconds:
            raise InputError(
                f"cluster.wait_slots={config.wait_slots}: after {config.wait_seconds:g} s there is room for "
                f"{cluster.slots} blocks ({cluster.description})"
            )
        say(f"waiting for room for {config.wait_slots} blocks; so far {cluster.slots}")
        time.sleep(15)


def check_address(address: str) -> None:
    """Raises InputError unless something answers at host:port; Ray itself would try for minutes."""
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise InputError(
            f"RAY_ADDRESS={address}: nothing answers there ({error}); allowed: host:port of a running cluster's head, "
            "or unset"
        ) from None


def available_cpus() -> int:
    """The CPUs that this process may run on, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _join_running() -> bool:
    try:
        ray.init(address="auto", **_QUIET)
    except ConnectionError:
        return False
    return True


def describe(config: ClusterConfig, where: str, resources: dict[str, float]) -> Cluster:
    """What a cluster with these resources offers to the configured blocks."""
    cpus, gpus = resources.get("CPU", 0.0), resources.get("GPU", 0.0)
    per_block = {"CPU": config.cpus_per_block}
    slots = int(cpus / config.cpus_per_block)
    use_gpu = config.device == "cuda" or (config.device == "auto" and gpus > 0)
    if use_gpu:
        per_block["GPU"] = config.gpus_per_block
        slots = min(slots, int(gpus / config.gpus_per_block))
    what = f"{cpus:g} CPUs" + (f", {gpus:g} GPUs" if gpus else "")
    device = "cuda" if use_gpu else "cpu"
    return Cluster(f"Ray: {where} ({what}); {slots} blocks at a time on {device}", slots, per_block)


def check_room(cluster: Cluster) -> None:
    """Raises InputError if not even one block fits."""
    if cluster.slots < 1:
        raise InputError(
            f"cluster.cpus_per_block={cluster.per_block['CPU']:g}, cluster.gpus_per_block="
            f"{cluster.per_block.get('GPU', 0):g}: no block fits ({cluster.description})"
        )


def check_before(config: ClusterConfig) -> None:
    """Raises InputError for what can be known without Ray: no room on this machine, nobody at RAY_ADDRESS."""
    if config.mode == "local":
        check_room(local(config))
    elif os.environ.get("RAY_ADDRESS"):
        check_address(os.environ["RAY_ADDRESS"])


def local(config: ClusterConfig) -> Cluster:
    """What a local cluster would offer, without starting one."""
    gpus = config.gpus if config.gpus is not None else torch.cuda.device_count()
    resources = {"CPU": float(config.cpus or available_cpus()), "GPU": float(gpus)}
    return describe(config, "this machine", resources)
