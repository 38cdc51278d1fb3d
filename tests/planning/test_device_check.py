"""Devices of banks, which are there and compute the banks' kernels, or are refused."""

from __future__ import annotations

import tomllib

import pytest

from mkldist.errors import SpecError
from mkldist.planning.resolved import resolve
from mkldist.spec.model import SweepSpec
from tests.data.mistakes import mistake

TEXT = """
name = "device"
[[datasets]]
name = "two_moons"
options = {{ n = 60 }}
[[banks]]
name = "b"
backend = "{backend}"
device = "{device}"
[[banks.kernels]]
function = "{function}"
widths = [0.5, 2.0]
[[methods]]
name = "level"
"""


def resolved(tmp_path, device, backend="recompute", function="gaussian"):
    text = TEXT.format(backend=backend, device=device, function=function)
    return resolve(SweepSpec.model_validate(tomllib.loads(text)), (), tmp_path)


@pytest.mark.parametrize("backend", ["recompute", "factors"])
def test_a_device_that_is_there(tmp_path, backend):
    pytest.importorskip("array_api_strict")
    assert resolved(tmp_path, "array_api_strict", backend).banks["two_moons", "b"].n_kernels == 2


def test_one_that_is_not(tmp_path):
    with mistake("banks.b.device", '"cuba"', "not there", error=SpecError):
        resolved(tmp_path, "cuba")


def test_kernels_that_devices_do_not_compute(tmp_path):
    pytest.importorskip("array_api_strict")
    with mistake("banks.b.device", "laplacian-rbf", error=SpecError):
        resolved(tmp_path, "array_api_strict", function="matern")


def test_the_plain_path_takes_all_kernels(tmp_path):
    assert resolved(tmp_path, "cpu", "memory", "matern").banks["two_moons", "b"].n_kernels == 2
