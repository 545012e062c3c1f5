"""Programs called by several threads at once."""

import threading

import numpy as np


def wrong_in_threads(program, given, rounds):
    """The factors for which a program, called at once with multiples of its inputs, is wrong."""
    expected = {k: [result.copy() for result in program([a * k for a in given])] for k in range(1, 5)}
    wrong = []

    def work(k):
        for _ in range(rounds):
            for ours, theirs in zip(program([a * k for a in given]), expected[k]):
                if not np.array_equal(ours, theirs):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in expected]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return wrong
