"""Names of devices: those that are there, and one message for each that is not."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from mkldist.core.devices import Device, device_named
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
    wide = values.astype(np.float64)
    np.testing.assert_array_equal(device.host(device.seen(wide)), wide)
    np.testing.assert_array_equal(device.host(device.seen(values)), values)
    np.testing.assert_array_equal(device.host(device.zeros((2, 1))), np.zeros((2, 1)))
    np.testing.assert_array_equal(device.host(device.xp.sum(there)), 15.0)


def test_the_memory_of_an_accelerator_is_what_its_library_says():
    memory = {"cuda:1": 2**30}
    cuda = SimpleNamespace(mem_get_info=lambda place: (memory[str(place)], 2**35))
    place = type("Place", (), {"type": "cuda", "__str__": lambda self: "cuda:1"})()
    assert Device("torch:cuda:1", SimpleNamespace(cuda=cuda), place).free_bytes == 2**30
    assert Device("torch:cuda:1", SimpleNamespace(), place).free_bytes is None
    assert Device("numpy", SimpleNamespace()).free_bytes is None


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
