"""Functions with every shape of control flow, and arguments for them: (function, arguments of each call).

Tests compare their results as plain Python, scripted, and scripted in each mode that records.
"""

import minigrad as mg

CASES = []


def case(*calls, gradients=True):
    """Add a function and its arguments to the list; numbers and lists of floats become tensors."""

    def note(function):
        CASES.append((function, [c if isinstance(c, tuple) else (c,) for c in calls], gradients))
        return function

    return note


# if -------------------------------------------------------------------------------------------------------------------


@case(2.0, -2.0)
def if_else(x):
    if x > 0:
        y = x * 2
    else:
        y = -x
    return y


@case(2.0, -2.0)
def if_alone(x):
    y = x
    if x > 0:
        y = y * y
    return y + x


@case(3.0, 1.0, -1.0, -3.0)
def if_elif_else(x):
    if x > 2:
        y = x * 2
    elif x > 0:
        y = x * 3
    elif x > -2:
        y = x * 5
    else:
        y = x * 7
    return y


@case((2.0, 1.0), (2.0, -1.0), (-2.0, 1.0), (-2.0, -1.0))
def if_in_if(x, y):
    z = x
    if x > 0:
        if y > 0:
            z = z + y
        else:
            z = z * y
            x = x + 1
    else:
        x = y if y > 0 else z
    return x, z


@case(2.0, -2.0)
def several_variables_and_a_temporary_one(x):
    a, b = x, 2 * x
    if x > 0:
        temporary = a * b
        a, b = temporary + 1, temporary + 2
    else:
        temporary = [x, x]
        b = temporary[0]
    return a + b


@case(2.0, -2.0)
def numbers_that_depend(x):
    factor, power, kind = 1, 2.0, "kept"
    if x > 0:
        factor = 3
    else:
        power = 0.5
    return x * factor + power, kind


@case(2.0, -2.0)
def number_beside_a_tensor(x):
    y = 0
    if x > 0:
        y = x * x
    return y + x


@case(2.0, -2.0)
def containers(x):
    state = {"a": x, "b": (x, 1)}
    if x > 0:
        state = {"a": x * 2, "b": (x * 3, 5)}
    return state["a"] + state["b"][0] * state["b"][1]


@case(2.0, -2.0)
def plain_conditions_stay(x, mode="double", times=3):
    if mode == "double":
        x = x * 2
    if times > 2 and mode is not None:
        if x > 0:
            x = x + times
    return x


# early return ---------------------------------------------------------------------------------------------------------


@case(2.0, -2.0)
def early_return(x):
    if x > 0:
        return x * 2
    return -x


@case(2.0, -2.0, 0.5, -0.5)
def early_returns(x):
    if x > 1:
        return x * 2
    y = x + 1
    if y < 0:
        return y * y
    if x > 0:
        z = y
    else:
        return y - 1
    return z * 3


@case((2.0, 1.0), (2.0, -1.0), (-2.0, 1.0), (-2.0, -1.0))
def sometimes_returns(x, y):
    if x > 0:
        if y > 0:
            return x * y
        x = x + 10
    x = x * 2
    if y > 0:
        x = x - 1
    return x


@case(2.0, -2.0)
def returns_a_pair(x):
    if x > 0:
        return x, 1
    return -x, 2


@case(2.0, -2.0)
def returns_after_a_loop(x):
    for i in range(3):
        if x > 3:
            return x * i
        x = x + 1
    return -x


@case((2.0, 1.0), (-2.0, 1.0), (-2.0, -5.0))
def returns_out_of_plain_loops_later(x, y):
    if x > 0:
        return x * y
    for k in (1, 2):
        if k == 2:
            return x - k
        y = y + k
    return y


@case((2.0, 1.0), (-2.0, 1.0), (-2.0, -5.0))
def a_plain_return_comes_first(x, y, z=None):
    if z is not None:
        return z
    for _ in range(2):
        if y > 0:
            return x * y
        y = y + 3
    return x


# boolean expressions --------------------------------------------------------------------------------------------------


@case((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
def and_or_not(x, y):
    z = x
    if x > 0 and y > 0:
        z = z + 1
    if x > 0 or y > 0:
        z = z * 3
    if not (x > 0 and not y > 0):
        z = z - 5
    return z


@case((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (0.0, -1.0))
def values_of_and_and_or(x, y):
    return (x and y) + 2 * (x or y)


@case(0.5, 1.5, 2.5, -1.0)
def chained(x):
    y = x
    if 0 < x < 2:
        y = y * 2
    if -2 < x + 1 < 1 < 5:
        y = y - 1
    return y if 1 <= y * 1 <= 3 else -y


@case(2.0, -2.0)
def with_python_values(x, flag=True, other=None):
    if flag and x > 0:
        x = x + 1
    if other is None or other > x:
        x = x * 2
    if not flag or x > 0:
        x = x - 5
    return x


@case((3.0, 0.0), (3.0, 2.0))
def the_right_side_is_not_computed(x, n):
    rows = mg.asarray([1.0, 2.0, 3.0])
    index = n.astype(mg.int64) + 2
    if index < 3 and rows[index] > 1:
        return x * rows[index]
    return x


@case(2.0, -2.0, 0.0)
def ternaries(x):
    y = x if x > 0 else -x if x < 0 else x + 7
    return y * (2 if x > 0 else 3)


# while ----------------------------------------------------------------------------------------------------------------


@case(1.0, 5.0, 200.0, gradients=False)
def while_loop(x):
    n = 0
    while x < 100:
        x = x * 2
        n += 1
    return x, n


@case(1.0, 5.0, gradients=False)
def while_with_and(x):
    i = 0
    while i < 10 and x < 50:
        x, i = x * 3, i + 1
    return x, i


@case(1.0, 30.0, gradients=False)
def while_true(x):
    while True:
        x = x * 2
        if x > 50:
            break
        x = x + 1
    return x


@case(1.0, 3.0, 80.0, gradients=False)
def while_else(x):
    n = 0
    while x < 50:
        x = x * 2
        if x == 24.0:
            break
        n = n + 1
    else:
        x = -x
    return x, n


@case(1.0, 3.0, 20.0, gradients=False)
def while_continue(x):
    total, i = 0.0, 0
    while i < x:
        i += 1
        if i == 2:
            continue
        if i == 7:
            break
        total = total + i
    return total


@case(1.0, 3.0, gradients=False)
def while_in_while(x):
    i, total = 0, x
    while i < x + 2:
        j = 0
        while j < i:
            total = total + j
            if total > 12:
                break
            j += 1
        i += 1
    return total, i


@case(1.0, 3.0, 40.0, gradients=False)
def return_out_of_two_loops(x):
    i = 0
    while i < 5:
        j = 0
        while j < 5:
            if x + i * j > 10:
                return x + i, j
            j += 1
        i += 1
    return x, -1


@case(2.0, gradients=False)
def newton(x):
    root, n = x, 0
    while True:
        n += 1
        better = root - (root * root - x) / (2 * root)
        if abs(better - root) < 1e-5 or n > 30:
            return better, n
        root = better


@case(1.0, -4.0, gradients=False)
def if_with_a_loop(x):
    if x > 0:
        while x < 10:
            x = x + 3
    else:
        for _ in range(3):
            x = x * 2
    return x


@case(4.0, gradients=False)
def a_number_that_is_never_another(x):
    step, i = 1, 0
    while i < x:
        step, i = 1, i + step
    return i


# for ------------------------------------------------------------------------------------------------------------------


@case([1.0, 2.0, 3.0], [-1.0, 5.0, 2.0])
def over_a_tensor(xs):
    total = 0
    for x in xs:
        total = total + x * x
    return total


@case([1.0, 2.0, 3.0], [-1.0, 5.0, 2.0], [9.0, 1.0, 9.0])
def over_a_tensor_with_jumps(xs):
    total, count = 0.0, 0
    for x in xs:
        if x > 8:
            break
        if x < 0:
            continue
        total += x
        count += 1
    else:
        total = total * 10
    return total, count


@case([1.0, 2.0, 3.0], [-1.0, 5.0, 2.0], [9.0, 1.0, 9.0], [3.0, -9.0, 4.0])
def over_a_tensor_with_jumps_out_of_two_ifs(xs):
    total, count = 0.0, 0
    for x in xs:
        if x > 0:
            if x > 8:
                break
            y = x * 2
        else:
            if x < -8:
                continue
            y = -x
        total += y
        count += 1
    return total, count


@case([[1.0, 2.0], [3.0, 4.0]], [[9.0, 2.0], [3.0, 4.0]])
def over_rows_and_their_elements(rows):
    total = mg.zeros(())
    for row in rows:
        for x in row:
            if x > 8:
                break
            total = total + x * row.sum()
    return total


@case([[1.0, 2.0], [3.0, 4.0]])
def target_is_a_pair(rows):
    total = 1.0
    for a, b in rows:
        total = total * a + b
    return total


@case([1.0, 4.0, 3.0], [1.0, 2.0, 3.0])
def found_in_a_tensor(xs):
    for x in xs:
        if x > 3:
            return x * 2
    return xs.sum()


@case(3.0, 5.0, gradients=False)
def range_of_a_tensor(x):
    total = 0
    for i in range(x.astype(mg.int64)):
        total = total + i * x
    return total


@case(3.0, 5.0, 9.0, gradients=False)
def range_with_start_step_and_jumps(x):
    n = x.astype(mg.int64)
    total = mg.zeros(())
    for i in range(n + 10, n, -2):
        if i == 9:
            continue
        if total > 35:
            break
        total = total + i
    else:
        total = -total
    return total


@case(1.0, 4.0, 7.0)
def python_range_with_break(x):
    for i in range(6):
        x = x + i
        if x > 9:
            break
    return x


@case(1.0, 4.0)
def python_loops_stay(x, names=("a", "b")):
    seen = []
    for i, name in enumerate(names):
        for k in range(2):
            seen.append(name * k)
            if k == i:
                break
        if x > 3:
            x = x + i
    return x, "".join(seen)


@case(2.0, 3.0)
def list_of_tensors(x):
    parts = [x, x * 2, x * 3]
    total = 0
    for part in parts:
        if part > 5:
            total = total + part
    return total


# changing in place ----------------------------------------------------------------------------------------------------


@case(2.0, -2.0)
def augmented(x):
    total = mg.zeros(())
    count = 0
    if x > 0:
        total += x
        count += 1
    else:
        total -= 3
    return total, count


@case([1.0, 2.0, 3.0])
def augmented_in_a_loop(xs):
    total = mg.zeros(())
    for x in xs:
        total += x * x
    return total


@case([1.0, 2.0, 3.0], [-1.0, 2.0, 3.0])
def element_assigned(xs):
    out = mg.zeros(3)
    if xs[0] > 0:
        out[0] = xs[1] * 2
    else:
        out[1:] = xs[1:]
    return out


@case([1.0, 2.0, 3.0])
def elements_assigned_in_a_loop(xs):
    out = mg.zeros(3)
    i = 0
    for x in xs:
        out[i] = x * x
        i += 1
    return out


# functions ------------------------------------------------------------------------------------------------------------


@case(2.0, -2.0)
def inner_function(x):
    def half(y):
        if y > 0:
            return y / 2
        return y

    return half(x) + half(-x)


@case(2.0, -2.0)
def with_blocks(x):
    with mg.scope("part"):
        if x > 0:
            return x * 2
        y = x + 1
    return y * y


@case(2.0, -2.0)
def comprehensions(x):
    parts = [x * k for k in range(3) if k != 1]
    if x > 0:
        parts = [p + 1 if p > 1 else p for p in parts]
    return sum(parts)


@case((2.0, 3.0), (-2.0, 3.0))
def keyword_only_and_starred(x, *rest, scale=2, **others):
    if x > 0:
        x = x * scale
    return x + sum(rest) + len(others)
