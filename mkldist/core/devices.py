"""Devices that arrays are computed on, by libraries of the Python array API standard.

``"cpu"`` stands for the compiled loops of this package, which need no such library.  Other devices
are named by library and device, such as ``"torch:cuda"``; ``"cuda"`` is short for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.core.arrays import Array
from mkldist.errors import SpecError, nearest

CPU = "cpu"
TORCH = "torch"
LIBRARIES = (TORCH, "numpy", "array_api_strict")
"""Libraries by their modules: PyTorch for accelerators, the others to hold it to."""

SHORT = ("cuda", "xpu")
"""Devices of PyTorch that need not be named with it."""

EXAMPLES = '"cpu", "cuda", "cuda:1" or "torch:cpu"'


@dataclass(frozen=True)
class Device:
    """A device and the library that computes on it."""

    name: str  # library and device, such as ``torch:cuda:0``
    xp: Any  # module of the functions of the standard
    place: Any = None  # the device as the library takes it; None for its only one

    @property
    def on_processor(self) -> bool:
        """True if the device is the processor itself."""
        return self.place is None or str(self.place) == CPU

    @property
    def free_bytes(self) -> int | None:
        """Bytes of memory that the device has free; None if it is the processor's or unknown."""
        module = None if self.on_processor else getattr(self.xp, self.place.type, None)
        known = getattr(module, "mem_get_info", None)
        return None if known is None else int(known(self.place)[0])

    def array(self, values: Array) -> Any:
        """Return a copy of numbers of the host on the device, as float64."""
        own = np.ascontiguousarray(values, dtype=np.float64)
        return self.xp.asarray(own, dtype=self.xp.float64, device=self.place, copy=True)

    def seen(self, values: Array) -> Any:
        """Return numbers of the host on the device, as float64; nothing may change them.

        The processor as a device does without a copy where it can.
        """
        if not (self.on_processor and values.flags.writeable and values.dtype == np.float64):
            return self.array(values)
        return self.xp.asarray(values, device=self.place)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """Return zeros on the device, float64."""
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.place)

    def host(self, values: Any) -> Array:
        """Return an array of the device on the host."""
        from array_api_compat import is_torch_array

        there = values.cpu() if is_torch_array(values) else self.xp.asarray(values)
        return np.from_dlpack(there)


def device_named(name: str, where: str) -> Device:
    """Return a device that is there."""
    library, _, place = name.partition(":")
    if library in SHORT:
        library, place = TORCH, name
    if library not in LIBRARIES:
        raise _unknown(name, where, "no such name")
    try:
        xp = _functions(library)
    except ImportError as error:
        raise SpecError(
            where,
            f'"{name}", but no package {error.name or library}',
            "PyTorch and array-api-compat, to compute on a device",
            "Run: pip install 'mkldist[gpu]'",
        ) from error
    if library != TORCH:
        if place:
            raise _unknown(name, where, f"{library} has no devices")
        return Device(library, xp)
    try:
        chosen = xp.device(place or CPU)
        xp.zeros(1, dtype=xp.float64, device=chosen)
    except (RuntimeError, AssertionError, TypeError, ValueError, NotImplementedError) as error:
        raise _unknown(name, where, str(error).strip().partition("\n")[0]) from error
    return Device(f"{TORCH}:{chosen}", xp, chosen)


def _functions(library: str) -> Any:
    """Return the functions of the standard as a library has them."""
    if library == TORCH:
        import array_api_compat.torch

        return array_api_compat.torch
    if library == "numpy":
        import array_api_compat.numpy

        return array_api_compat.numpy
    import array_api_strict

    return array_api_strict


def _unknown(name: str, where: str, reason: str) -> SpecError:
    return SpecError(
        where,
        f'"{name}", which is not there ({reason})',
        f"a device of this machine that computes in float64: {EXAMPLES}",
        nearest(name, (CPU, "cuda", "torch:cpu")) or 'Leave it out, or set device = "cpu"',
    )
