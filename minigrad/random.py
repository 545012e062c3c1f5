"""Random numbers from the default generator, or from your own `Generator(seed)`.

>>> import minigrad as mg
>>> mg.random.seed(0)
>>> mg.random.uniform(2)
Tensor([0.03474188, 0.01154673], shape=(2,), dtype=float32, device=cpu)
"""

from .arguments.public import public
from .ops.random import DEFAULT_GENERATOR, Generator

seed = DEFAULT_GENERATOR.seed
get_state = DEFAULT_GENERATOR.get_state
set_state = DEFAULT_GENERATOR.set_state
uniform = DEFAULT_GENERATOR.uniform
normal = DEFAULT_GENERATOR.normal
integers = DEFAULT_GENERATOR.integers
bernoulli = DEFAULT_GENERATOR.bernoulli
permutation = DEFAULT_GENERATOR.permutation
categorical = DEFAULT_GENERATOR.categorical
multinomial = DEFAULT_GENERATOR.multinomial
bits = DEFAULT_GENERATOR.bits

__all__ = [
    "Generator", "seed", "get_state", "set_state",
    "uniform", "normal", "integers", "bernoulli", "permutation", "categorical", "multinomial",
    "bits",
]

public(__all__, globals())
