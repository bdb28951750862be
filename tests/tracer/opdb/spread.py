"""Which samples of an operator are tried."""

_SAMPLES = 4  # per op and dtype


def spread(samples):
    """A few of the samples, from the whole range."""
    samples = list(samples)
    return samples[:: len(samples) // _SAMPLES + 1]
