"""Functions whose control flow a tensor cannot decide: (function, arguments, error message, text of its line)."""

import minigrad as mg

CASES = []
counter = 0
buffer = mg.zeros(2)


def refused(*args, says, line):
    def note(function):
        CASES.append((function, args, says, line))
        return function

    return note


@refused(1.0, says="`y` has two kinds after the `if` at line", line="if x > 0:  # shapes")
def shapes_differ(x):
    if x > 0:  # shapes
        y = x
    else:
        y = mg.zeros(3)
    return y


@refused(1.0, says="Expected: the kind where the condition holds: float32 ()", line="if x > 0:  # dtypes")
def dtypes_differ(x):
    if x > 0:  # dtypes
        y = x
    else:
        y = x.astype(mg.int32)
    return y


@refused(1.0, says="`mode` has two kinds", line="if x > 0:  # texts")
def texts_differ(x):
    mode = "a"
    if x > 0:  # texts
        mode = "b"
    return x, mode


@refused(1.0, says="the value that is returned has two kinds", line="if x > 0:  # nothing")
def returns_nothing(x):
    if x > 0:  # nothing
        return x


@refused(1.0, says="`y` may have no value here: a tensor decides whether the `if`", line="return y + x  # undefined")
def defined_on_one_side(x):
    if x > 0:
        y = x
    return y + x  # undefined


@refused(1.0, says="whether the `while` at line", line="return y  # after while")
def defined_in_a_loop(x):
    while x < 3:
        x = x + 1
        y = x
    return y  # after while


@refused(1.0, says="`y` has a different kind after a turn of the `while` at line", line="while x < 3:  # carry")
def carry_changes(x):
    y = mg.zeros(2)
    while x < 3:  # carry
        x, y = x + 1, mg.zeros(3)
    return y


@refused(1.0, says="must stay plain Python: it is inside `try`", line="if x > 0:  # try")
def inside_try(x):
    try:
        if x > 0:  # try
            return x
    except ZeroDivisionError:
        pass
    return -x


@refused(1.0, says="the `return` at line", line="while x < 3:  # leaves try")
def return_leaves_try(x):
    while x < 3:  # leaves try
        try:
            return x
        finally:
            x = x + 1
    return -x


@refused(1.0, says="leaves `try`", line="if x > 0:  # before")
def return_before_one_that_leaves_try(x):
    if x > 0:  # before
        return x
    try:
        return -x
    except ZeroDivisionError:
        return x


@refused(1.0, says="it changes `counter`, which is declared global", line="if x > 0:  # global")
def changes_a_global(x):
    global counter
    if x > 0:  # global
        counter += 1
    return x


@refused(1.0, says="`del y` is in it", line="if x > 0:  # del")
def deletes(x):
    y = x
    if x > 0:  # del
        del y
    return x


@refused(1.0, says="`:=` is in its condition", line="while (y := x * 2) < 9:")
def walrus(x):
    while (y := x * 2) < 9:
        x = y
    return x


@refused(1.0, says="the inner function at line", line="while x < 3:  # captured")
def captured_by_an_inner_function(x):
    fs = []
    while x < 3:  # captured
        x = x + 1
        fs.append(lambda: x)  # noqa: B023 - that is what is refused
    return fs[0]()


@refused(1.0, says="it is in a comprehension", line="return sum([y for y in [x, -x] if y > 0])")
def comprehension(x):
    return sum([y for y in [x, -x] if y > 0])


@refused(1.0, says="it is an `assert`", line="assert x > 0")
def asserts(x):
    assert x > 0
    return x


@refused(1.0, says="ValueError in the `if` at line", line="if x < 0:  # raise")
def raises(x):
    if x < 0:  # raise
        raise ValueError("negative")
    return x


@refused(1.0, says="`box.value` is assigned in the `if` at line", line="if x > 0:  # attribute")
def attribute(x):
    box = type("Box", (), {})()
    if x > 0:  # attribute
        box.value = x
    return x


@refused(1.0, says="`buffer[0]` is assigned in", line="if x > 0:  # global subscript")
def subscript_of_a_global(x):
    if x > 0:  # global subscript
        buffer[0] = x
    return x


@refused(1.0, says="`seen`, a list, is changed in", line="if x > 0:  # list")
def list_is_changed(x):
    seen = [1]
    if x > 0:  # list
        seen[0] = x
    return x


@refused(1.0, says="a value that is not a tensor changes in the `if` at line", line="if x > 0:  # append")
def list_is_appended_to(x):
    seen = []
    if x > 0:  # append
        seen.append(1)
    return x, len(seen)


@refused(1.0, says="which also reads it by another name", line="if x > 0:  # alias")
def seen_under_another_name(x):
    total = mg.zeros(())
    other = total
    if x > 0:  # alias
        total += x
        x = x + other
    return x


@refused(1.0, says="in-place change of a tensor that may be the same as another", line="y += 1  # whose")
def whose_memory(x):
    y = x * 1
    if x > 0:
        y = -x
    y += 1  # whose
    return y


@refused(1.0, says="is changed in place and also assigned in", line="if x > 0:  # both")
def changed_and_replaced(x):
    y = x * 1
    if x > 0:  # both
        y += 1
        y = y * 2
    return y


@refused([1.0, 2.0], says="the truth of a tensor of 2 elements is ambiguous", line="if x > 0:  # many")
def many_elements(x):
    if x > 0:  # many
        x = -x
    return x


@refused(1.0, says="range() needs integers, not a tensor float32", line="for _ in range(x):")
def range_of_a_float(x):
    for _ in range(x):
        x = x + 1
    return x


@refused(1.0, says="in a loop that stays plain Python", line="for i in range(n):  # try")
def range_inside_try(x):
    n = x.astype(mg.int64)
    try:
        for i in range(n):  # try
            x = x + i
    finally:
        x = x * 2
    return x
