"""A training step as people write it, for tests of what the compiler and the views make of it."""

import minigrad as mg


def training_step(loss_of, optimizer):
    """A jitted step, which stores the new parameters where the old ones were."""

    @mg.jit
    def step(*batch):
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        return loss

    return step
