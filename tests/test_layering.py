"""Data flow one way: who may import what, read from the files and seen in a fresh process."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = sorted((ROOT / "stitching_core").rglob("*.py"))
RUNNERS = {"ray", "mlflow", "optuna", "hydra", "omegaconf"}
FORBIDDEN = {
    "stitching_core": RUNNERS | {"polars", "sweeps", "analysis", "matplotlib"},
    "analysis": RUNNERS | {"torch", "torchvision", "sweeps"},
    "tune_configs": RUNNERS | {"polars", "torch", "sweeps", "analysis", "stitching_core"},
}


def imports(path: Path) -> Iterator[str]:
    """The full names of what a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("package", FORBIDDEN)
def test_no_file_imports_what_its_package_must_not(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        assert {name.split(".")[0] for name in imports(path)}.isdisjoint(FORBIDDEN[package]), path


def test_analysis_shares_only_what_needs_no_torch() -> None:
    shared = {name for path in (ROOT / "analysis").glob("*.py") for name in imports(path) if "stitching_core" in name}
    assert {name.split(".")[1] for name in shared} <= {"record", "errors"}


def test_only_sweeps_imports_what_runs_sweeps() -> None:
    folders = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "sweeps"]
    assert {folder.name for folder in folders} >= {"stitching_core", "analysis"}
    for folder in folders:
        for path in folder.rglob("*.py"):
            assert {name.split(".")[0] for name in imports(path)}.isdisjoint(RUNNERS), path


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_prints_nothing(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in ("print", "sys.stdout.write", "sys.stderr.write"), node.lineno


def test_importing_the_whole_core_is_silent_and_loads_no_runner() -> None:
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in CORE if path.stem != "__init__"]
    loaded = f"[name for name in {sorted(FORBIDDEN['stitching_core'])} if name in sys.modules]"
    assert in_a_fresh_process(f"import sys, {', '.join(names)}\nprint({loaded})") == "[]\n"


def test_the_schema_is_read_without_torch() -> None:
    code = "import sys, stitching_core.record, stitching_core.errors\n"
    assert in_a_fresh_process(code + "print([n for n in ('torch', 'numpy') if n in sys.modules])") == "[]\n"
