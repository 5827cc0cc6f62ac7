from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in (ROOT / "analysis").glob("*.py") if path.stem != "__init__")


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def test_analysis_reads_results_without_the_stack_that_made_them() -> None:
    heavy = "torch ray mlflow optuna hydra"
    code = "import sys\n" + "".join(f"import analysis.{name}\n" for name in MODULES)
    code += f"print([name for name in '{heavy}'.split() if name in sys.modules])"
    done = _python("-c", code)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("script", ["stitchability", "query", "figures", "compare"])
def test_script_runs_by_its_path(script: str) -> None:
    done = _python(f"analysis/{script}.py", "nowhere", *(["nowhere"] if script in ("query", "compare") else []))
    assert done.returncode == 2
    assert done.stderr == "error: nowhere is not a folder; expected a sweep's results, results/<sweep>\n"


def test_closed_pipe_is_quiet(results_folder: Path) -> None:
    command = f"set -o pipefail; '{sys.executable}' analysis/stitchability.py '{results_folder}' | true"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 141)
    assert done.stderr == ""
