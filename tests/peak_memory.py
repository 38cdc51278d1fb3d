"""The most memory that a process has held."""

import resource
from pathlib import Path


def peak_resident_bytes() -> int:
    """Return the largest resident size of this process since its program began.

    The peak of ``getrusage``, which other systems than Linux have alone, may be that of the process
    which started this one.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    peaks = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    kib = peaks[0] if peaks else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * int(kib)
