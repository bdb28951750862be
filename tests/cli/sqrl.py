def sqrl(x: Tensor) -> Tensor:
    """Squared leaky relu, an example of Knossos."""
    if torch.sum(x) < 0.0:
        t = -0.125 * x
    else:
        t = 1 / 2 * x ** 2
    return torch.mean(torch.sin(t) * t)
