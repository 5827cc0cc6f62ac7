"""Where the real MNIST is at hand, a skip of the tests that need it is a failure."""

import os
from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped and "STITCHING_MNIST" in os.environ and "STITCHING_MNIST" in str(report.longrepr):
        report.outcome, report.longrepr = "failed", f"skipped although STITCHING_MNIST is set: {report.longrepr}"
    return report
