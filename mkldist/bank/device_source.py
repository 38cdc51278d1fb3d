"""Kernels on points whose passes, and whose values for factors, a device computes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mkldist.bank.device_passes import DevicePasses
from mkldist.bank.sources import BankSource, FeatureSource, SelectedSource
from mkldist.core.arrays import Floats, Ints
from mkldist.core.devices import CPU, Device, device_named
from mkldist.errors import SpecError
from mkldist.kernel_functions.lengths import inverse_lengths
from mkldist.kernels.array_values import TAKEN, ArrayValues, takes
from mkldist.kernels.gaps import without_gaps
from mkldist.kernels.gram_tiles import BASE_OF, INNER
from mkldist.kernels.kernel_list import KernelList
from mkldist.optim.thin_products import ON_HOST, ThinProducts


@dataclass(frozen=True, eq=False)
class DeviceSource(FeatureSource):
    """Kernels on features, with a device for their passes.

    The loops of this processor compute what the device is not asked for.

    Parameters
    ----------
    points, kernels, cosine
        See :class:`~mkldist.bank.sources.FeatureSource`.
    device : Device
        The device.
    """

    device: Device | None = None

    @cached_property
    def passes(self) -> DevicePasses | None:
        """Passes over all kernels on the device."""
        if self.device is None:
            return None
        points = self.points if self.presence is None else without_gaps(self.points)
        return DevicePasses(ArrayValues(self.device, points, self.kernels, self._factors))

    def between(self, kernel: int, rows: Ints, columns: Ints | slice) -> Floats:
        """See :meth:`mkldist.bank.sources.BankSource.between`."""
        if self.passes is None:
            return super().between(kernel, rows, columns)
        return self.passes.between(kernel, rows, columns)

    def at(self, points: Ints) -> DeviceSource:
        """See :meth:`mkldist.bank.sources.BankSource.at`."""
        return replace(self, points=self.points[points])

    @cached_property
    def _factors(self) -> Floats | None:
        """Factors of the rows and columns of each kernel, (M, n); None if all are 1."""
        of_products = BASE_OF[self.kernels.function] == INNER
        divided = self.cosine and bool(of_products.any())
        if not divided and self.presence is None:
            return None
        found = np.ones((self.n_kernels, self.n_points))
        if divided:
            plain = FeatureSource(self.points, self.kernels)
            lengths = inverse_lengths(plain.diagonals(slice(0, self.n_kernels)))
            found[of_products] = lengths[of_products]
        if self.presence is not None:
            found *= self.presence[slice(0, self.n_kernels)]
        return found


def on_device(source: BankSource, name: str, where: str) -> BankSource:
    """Return a source whose passes a device computes; the source itself for ``"cpu"``.

    Raises
    ------
    mkldist.errors.SpecError
        If the device is not there, or does not compute these kernels.
    """
    if name == CPU:
        return source
    if not isinstance(source, FeatureSource):
        raise _not_computed(name, where)
    device = device_for(source.kernels, name, where)
    return DeviceSource(source.points, source.kernels, source.cosine, device)


def device_for(kernels: KernelList | None, name: str, where: str) -> Device:
    """Return the device that computes some kernels.

    Parameters
    ----------
    kernels : KernelList or None
        The kernels; None for others than those of dense features.
    name, where
        As for :func:`on_device`.

    Raises
    ------
    mkldist.errors.SpecError
        As for :func:`on_device`.
    """
    device = device_named(name, where)
    if kernels is None or not takes(kernels):
        raise _not_computed(name, where)
    return device


def _not_computed(name: str, where: str) -> SpecError:
    """Return the error of a device for kernels that no device computes."""
    return SpecError(
        where,
        f'"{name}" for other kernels than devices compute',
        f"kernels of dense features with {', '.join(TAKEN)}",
        'Set device = "cpu", or give these kernels a bank of their own',
    )


def passes_of(source: BankSource) -> DevicePasses | None:
    """Return the passes of a source on a device; None if it has none.

    Selections of a source share its points on the device.
    """
    if isinstance(source, SelectedSource):
        whole = passes_of(source.whole)
        return None if whole is None else whole.select(source.index)
    return source.passes if isinstance(source, DeviceSource) else None


def device_of(source: BankSource) -> Device | None:
    """Return the device of a source; None if it has none."""
    if isinstance(source, SelectedSource):
        return device_of(source.whole)
    return source.device if isinstance(source, DeviceSource) else None


def thin_products(source: BankSource) -> ThinProducts:
    """Return what multiplies the factors of the kernels of a source: its device, if it has one."""
    device = device_of(source)
    return ON_HOST if device is None else ThinProducts(device)
