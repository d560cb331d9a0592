"""How often VMs of each size occur."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def size_weights(sizes: Sequence[float], mean: float) -> NDArray[np.float64]:
    """Shares that add up to 1, a power of each size, so that the mean comes out."""
    values = np.array(sizes, np.float64)
    low, high = -4.0, 6.0
    for _ in range(60):
        exponent = (low + high) / 2
        weights = values**exponent
        weights /= weights.sum()
        if weights @ values < mean:
            low = exponent
        else:
            high = exponent
    return weights
