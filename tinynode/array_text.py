"""Arrays as text: what the representations of Variables are made of."""

from __future__ import annotations

import numpy

from tinynode.backend import Array, to_host


def array_text(array: Array, head: str, separator: str) -> str:
    """``head(values)``; with the shape where there are no values to show it."""
    if array is None:
        return f"{head}(None)"
    host = to_host(array)
    values = numpy.array2string(host, separator=separator, prefix=head + "(")
    shape = f", shape={host.shape}" if host.size == 0 else ""
    return f"{head}({values}{shape})"


def statistics_text(title: str, array: Array | None) -> str:
    """Mean, standard deviation and a few values, in lines."""
    if array is None:
        return f"  {title}: None"
    host = to_host(array)
    values = f"  {title}: {numpy.array2string(host, threshold=20, edgeitems=2)}"
    if not host.size or host.dtype.kind not in "iufb":
        return values
    return f"  {title}: mean {host.mean():.6g}, std {host.std():.6g}\n{values}"
