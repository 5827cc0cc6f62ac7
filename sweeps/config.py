"""From YAML and the command line to one checked configuration, or to one line that says what is wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

import tune_configs
from stitching_core.errors import InputError
from sweeps.schema import SweepConfig

CONFIGS = Path(str(tune_configs.__file__)).parent
PRIMARY = "full_grid"
GROUPS = tuple(sorted(folder.name for folder in CONFIGS.iterdir() if any(folder.glob("*.yaml"))))


def options(group: str) -> list[str]:
    """The names that a group's value may take."""
    return sorted(path.stem for path in (CONFIGS / group).glob("*.yaml"))


def load_config(arguments: list[str]) -> SweepConfig:
    """The configuration that the command line asks for, with types checked.

    Args:
        arguments: ``group=option`` and ``key.path=value``, as Hydra writes them; ``experiment=2e`` is short for
            ``experiment=smith2025_2e``.

    Raises:
        InputError: anything that can't be composed: the message is one line.
    """
    composed = _compose([_expand(argument) for argument in arguments])
    with open_dict(composed):
        choices = composed.hydra.runtime.choices
        del composed["hydra"]
    try:
        checked = OmegaConf.merge(OmegaConf.structured(SweepConfig), composed)
        missing = OmegaConf.missing_keys(checked)
        if missing:
            raise InputError(f"{sorted(missing)[0]} has no value")
        config = OmegaConf.to_object(checked)
    except ConfigKeyError as error:
        raise InputError(_unknown(str(error.full_key), _file(error.full_key, choices, arguments))) from None
    except OmegaConfBaseException as error:
        message = str(error).splitlines()[0]
        raise InputError(f"{error.full_key}: {message} ({_file(error.full_key, choices, arguments)})") from None
    assert isinstance(config, SweepConfig)
    return config


def _expand(argument: str) -> str:
    key, _, value = argument.partition("=")
    if key == "experiment" and f"smith2025_{value}" in options("experiment"):
        return f"experiment=smith2025_{value}"
    return argument


def _overrides(arguments: list[str]) -> list[Override]:
    """The arguments as Hydra reads them.

    Raises:
        InputError: one that can't be read, or that asks for what a sweep can't do.
    """
    parsed = []
    for argument in arguments:
        try:
            override = OverridesParser.create().parse_override(argument)
        except HydraException:
            override = None
        if override is None or not override.key_or_group:
            raise InputError(f"can't read the argument {argument!r}; write key=value or group=option")
        if override.is_sweep_override():
            raise InputError(f"{argument!r} gives several values; write key=[a,b] for a list, one option for a group")
        key = override.key_or_group
        if key in GROUPS and (override.is_delete() or str(override.value()) not in options(key)):
            raise InputError(f"{argument} is unknown; {key} may be {', '.join(options(key))}")
        if key.startswith("hydra"):
            raise InputError(f"{argument!r}: Hydra's own settings can't be changed here")
        parsed.append(override)
    return parsed


def _compose(arguments: list[str]) -> DictConfig:
    lines = []
    for override in _overrides(arguments):
        key, line = override.key_or_group, str(override.input_line)
        if key == "grid.cuts" and isinstance(override.value(), dict | list) and not override.is_delete():
            lines.append(f"~{key}")  # one list and a list for each architecture can't be merged
        # which keys exist is for the schema to say, since the YAML files need not mention every one; but the models are
        # those that the files name, lest a misspelt one be a new one
        plain = override.type == OverrideType.CHANGE and key not in GROUPS and "@" not in line.partition("=")[0]
        lines.append(f"++{line}" if plain and not key.startswith("zoo.models.") else line)
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(config_dir=str(CONFIGS), version_base="1.3"):
            return compose(PRIMARY, overrides=lines, return_hydra_config=True)
    except (HydraException, OmegaConfBaseException) as error:
        for line in lines:
            key = line.partition("=")[0]
            if key.startswith("zoo.models.") and f"'{key}'" in str(error):
                raise InputError(f"{key} is set by no file of tune_configs/zoo; write +{line} to add it") from None
        raise InputError(" ".join(str(error).split())) from None


def _unknown(key: str, where: str) -> str:
    """One line for a key that does not exist, with its siblings that do."""
    parent, allowed = "", [field.name for field in dataclasses.fields(SweepConfig)]
    kind: Any = SweepConfig
    for part in key.split("."):
        hints = get_type_hints(kind) if dataclasses.is_dataclass(kind) else {}
        if part in hints:
            kind, parent = _dataclass_in(hints[part]) or hints[part], f"{parent}{part}."
            kind = _dataclass_in(kind) or kind
        elif parent.startswith("zoo.models.") and parent.count(".") == 2:
            parent = f"{parent}{part}."
        if dataclasses.is_dataclass(kind):
            allowed = [field.name for field in dataclasses.fields(kind)]
    return f"unknown key {key!r} (from {where}); {parent.rstrip('.') or 'the top level'} allows {', '.join(allowed)}"


def _dataclass_in(hint: Any) -> Any:
    """The dataclass in a hint such as ``TrainingConfig | None`` or ``dict[str, ModelConfig]``."""
    return next((part for part in (hint, *get_args(hint)) if dataclasses.is_dataclass(part)), None)


def _file(key: str | None, choices: Any, arguments: list[str]) -> str:
    """Where a key's value comes from: the command line, or the YAML file that sets it."""
    path = (key or "").partition("[")[0].split(".")  # an item of a list is set where the list is
    for argument in arguments:
        given = argument.lstrip("+~").partition("=")[0]
        if given not in GROUPS and all(a == b for a, b in zip(path, given.split("."), strict=False)):
            return "the command line"
    for group, inner in (("scale", path), ("experiment", path), (path[0], path[1:])):
        for file in _chain(CONFIGS / group / f"{choices.get(group)}.yaml"):
            content = yaml.safe_load(file.read_text())
            for part in inner:
                content = content.get(part) if isinstance(content, dict) else None
            if inner and content is not None:
                return f"tune_configs/{group}/{file.name}"
    return f"tune_configs/{PRIMARY}.yaml"


def _chain(file: Path) -> Iterator[Path]:
    """A file of a group and those that it starts from, itself first."""
    if file.exists():
        yield file
        for base in (yaml.safe_load(file.read_text()) or {}).get("defaults", []):
            if isinstance(base, str):
                yield from _chain(file.with_name(f"{base}.yaml"))


def to_yaml(config: SweepConfig) -> str:
    """The configuration as plain YAML, in the order of the schema."""
    return yaml.safe_dump(dataclasses.asdict(config), sort_keys=False)
