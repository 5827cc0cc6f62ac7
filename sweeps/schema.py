"""Every configuration key, its type and its default. A key that is not here is an error."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass
class TrainingConfig:
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    batch_size: int = 128
    epochs: int = 4
    schedule: str = "none"


@dataclass
class OwnTrainingConfig:
    """What one model's training has otherwise than its zoo's; null is the zoo's own value."""

    learning_rate: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    batch_size: int | None = None
    epochs: int | None = None
    schedule: str | None = None


@dataclass
class ModelConfig:
    kind: str = "trained"
    arch: str | None = None
    variant: str | None = None
    sigma: float | None = None
    weights: str | None = None
    source: str | None = None
    of: str | None = None
    training: OwnTrainingConfig | None = None


@dataclass
class ZooConfig:
    dir: str = "zoo"
    arch: str = "resnet18"
    classes: int | None = None
    allow_unlearned: bool = False
    training: TrainingConfig = field(default_factory=TrainingConfig)
    models: dict[str, ModelConfig] = field(default_factory=dict)


def training_of(zoo: ZooConfig, model: ModelConfig) -> TrainingConfig:
    """How a model of the zoo is trained."""
    own = vars(model.training) if model.training else {}
    return replace(zoo.training, **{key: value for key, value in own.items() if value is not None})


@dataclass
class SequenceConfig:
    """Where a sequence source lies, and which class of the receiver each of its classes stands for; null is i for i."""

    root: str | None = None
    class_map: dict[int, int] | None = None


@dataclass
class DataConfig:
    source: str = "digits"
    root: str | None = None
    download: bool = False
    seed: int = 0
    background_noise: float = 0.1
    train_items: int | None = None
    noise_train_items: int | None = None
    noise_test_items: int | None = None
    sequences: dict[str, SequenceConfig] = field(default_factory=dict)


@dataclass
class ProtocolConfig:
    name: str = "smith2025"
    stitch: str = "bn-conv1x1-bn"
    init: str = "default"
    bn_mode: str = "adapt"
    objective: str = "cross_entropy"
    learning_rate: float = 1e-4
    momentum: float = 0.9
    weight_decay: float = 0.01
    batch_size: int = 128
    epochs: int = 10
    l1: float = 0.0
    label_offset: int = 0


@dataclass
class GridConfig:
    mode: str = "same_cut"
    senders: list[str] | None = None
    receivers: list[str] | None = None
    pairs: str = "all"
    vary: dict[str, Any] = field(default_factory=dict)  # a list of values for a key of the protocol
    cuts: Any = None  # a list of names, or one list for each architecture
    fit_data: str = "own"
    eval_data: list[str] = field(default_factory=lambda: ["fit"])
    runs: int = 1


@dataclass
class SpaceConfig:
    learning_rate: list[float] = field(default_factory=lambda: [1e-3, 1e-1])
    momentum: list[float] = field(default_factory=lambda: [0.0, 0.99])
    weight_decay: list[float] = field(default_factory=lambda: [1e-6, 1e-1])
    epochs: list[int] = field(default_factory=lambda: [5, 20])
    init: list[str] = field(default_factory=lambda: ["default"])


@dataclass
class SearchConfig:
    mode: str = "none"
    n_trials: int = 0
    batch: int = 1
    validation_fraction: float = 0.2
    startup_trials: int = 5
    sample_cells: int = 0
    space: SpaceConfig = field(default_factory=SpaceConfig)


@dataclass
class MeasureConfig:
    rank: bool = False
    columns: int | None = None


@dataclass
class ClusterConfig:
    mode: str = "auto"
    cpus: int | None = None
    gpus: int | None = None
    device: str = "auto"
    cpus_per_block: float = 1.0
    gpus_per_block: float = 0.25
    block_cells: int = 64
    threads: int = 1
    object_store_mib: int = 512
    max_failures: int = 2
    wait_slots: int = 1
    wait_seconds: float = 0.0


@dataclass
class TrackingConfig:
    enabled: bool = True
    uri: str | None = None
    experiment: str = "stitching"


@dataclass
class SweepConfig:
    """One sweep. Each group is a folder of ``tune_configs``, whose files say what a key means."""

    name: str = "sweep"
    seed: int = 0
    results_dir: str = "results"
    plan_only: bool = False
    plugins: list[str] = field(default_factory=list)
    experiment_id: str | None = None
    scale: str = "full"
    zoo: ZooConfig = field(default_factory=ZooConfig)
    data: DataConfig = field(default_factory=DataConfig)
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
    grid: GridConfig = field(default_factory=GridConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
