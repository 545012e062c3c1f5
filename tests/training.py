"""A typical training step, for tests of the compiler and the views."""

import minigrad as mg


def training_step(loss_of, optimizer):
    """A jitted step that stores the new parameters in the memory of the old ones."""

    @mg.jit
    def step(*batch):
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        return loss

    return step
