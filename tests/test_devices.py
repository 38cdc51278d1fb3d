"""Names of devices: those that are there, and one message for each that is not."""

import sys

import numpy as np
import pytest

from mkldist.devices import device_named
from mkldist.errors import SpecError
from tests.data.mistakes import mistake


@pytest.mark.parametrize("name", ["numpy", "array_api_strict", "torch", "torch:cpu"])
def test_arrays_go_there_and_back(name):
    pytest.importorskip(name.partition(":")[0])
    device = device_named(name, "device")
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    there = device.array(values)
    assert there.dtype == device.xp.float64
    np.testing.assert_array_equal(device.host(there), values)
    np.testing.assert_array_equal(device.host(device.zeros((2, 1))), np.zeros((2, 1)))
    np.testing.assert_array_equal(device.host(device.xp.sum(there)), 15.0)


@pytest.mark.parametrize("name", ["gpu", "cude", "numpy:1", "torchcpu"])
def test_unknown_names(name):
    with mistake(f'"{name}", which is not there', "device", error=SpecError):
        device_named(name, "banks.b.device")


def test_a_device_that_this_machine_does_not_have():
    torch = pytest.importorskip("torch")
    missing = f"cuda:{torch.cuda.device_count()}"
    with mistake(f'"{missing}", which is not there', "torch:cpu", error=SpecError):
        device_named(missing, "banks.b.device")


def test_without_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "array_api_compat.torch", None)
    with mistake("no package", "pip install 'mkldist[gpu]'", error=SpecError):
        device_named("cuda", "banks.b.device")
