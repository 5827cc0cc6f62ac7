"""ray_cluster.yaml against Ray's own schema. Nothing is started."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

FILE = Path(__file__).parents[1] / "ray_cluster.yaml"


@pytest.fixture
def cluster() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text())


def test_it_fits_rays_schema(cluster: dict[str, Any]) -> None:
    validate_config(prepare_config(cluster))


def test_a_misspelt_key_is_noticed(cluster: dict[str, Any]) -> None:
    cluster["head_node_kind"] = cluster.pop("head_node_type")
    with pytest.raises(Exception, match="head_node_kind"):
        validate_config(prepare_config(cluster))


def test_nothing_listens_for_the_outside(cluster: dict[str, Any]) -> None:
    (start,) = [line for line in cluster["head_start_ray_commands"] if "ray start" in line]
    assert "--include-dashboard=false" in start
    assert "0.0.0.0" not in FILE.read_text()


def test_the_image_has_the_ray_that_the_project_is_tested_with(cluster: dict[str, Any]) -> None:
    import ray

    assert f":{ray.__version__}-py311" in cluster["docker"]["image"]
