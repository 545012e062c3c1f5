"""Numbers that do not depend on a library's generator; this helper imports nothing, so it speaks as its caller."""


def fill(model, seed=0, scale=0.2):
    """Give the parameters of a model values that every library gives them."""
    import numpy as np

    rng = np.random.RandomState(seed)
    for p in model.parameters():
        values = scale * rng.randn(*p.shape) if p.dim() > 1 else scale * rng.rand(*p.shape)
        p.data.copy_(p.new_tensor(values.tolist()).view(p.size()))
    return model


def numbers(*shape, seed=1):
    import numpy as np

    return np.random.RandomState(seed).randn(*shape).astype("float32")


def integers(high, *shape, seed=2):
    import numpy as np

    return np.random.RandomState(seed).randint(0, high, shape)
