"""Code that is written in LLVM's language by hand, with short forms for the fields of tables, branches and loops."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

# The fields of a table are addresses or numbers of eight bytes.  An `atomic` field is one that other threads write.
SHORT = {
    # The first round of a loop comes from the block `entry`, and its other rounds from its last block.
    r"(?s)for (%(\S+)) below (\S+)\n(.*?)next \1 in (\S+)": r"br label %head.\2\nhead.\2:"
                                                          r"\n  \1 = phi i64 [0, %entry], [\1.next, %\5]"
                                                          r"\n  if slt i64 \1, \3 then body.\2 else after.\2"
                                                          r"\nbody.\2:\n\4\1.next = add nsw i64 \1, 1"
                                                          r"\n  br label %head.\2\nafter.\2:",
    r"%(\S+) = atomic (\S+) (%\S+)\[(\S+)\]": r"%\1.at = getelementptr i64, ptr \3, i64 \4"
                                              r"\n  %\1 = load atomic \2, ptr %\1.at monotonic, align 8",
    r"%(\S+) = (ptr|i\d+) (%\S+)\[(\S+)\]": r"%\1.at = getelementptr i64, ptr \3, i64 \4\n  %\1 = load \2, ptr %\1.at",
    r"if (.*) then (\S+) else (\S+)": r"%if.\2.\3 = icmp \1\n  br i1 %if.\2.\3, label %\2, label %\3",
}


def in_full(text: str) -> str:
    """LLVM's text for a text with short forms.

    >>> print(in_full("  %x = i64 %table[3]\\n  if eq i64 %x, 0 then here else there"))
      %x.at = getelementptr i64, ptr %table, i64 3
      %x = load i64, ptr %x.at
      %if.here.there = icmp eq i64 %x, 0
      br i1 %if.here.there, label %here, label %there
    >>> print(in_full("  for %i below %n\\n  call void @f(i64 %i)\\n  next %i in body.i"))
      br label %head.i
    head.i:
      %i = phi i64 [0, %entry], [%i.next, %body.i]
      %if.body.i.after.i = icmp slt i64 %i, %n
      br i1 %if.body.i.after.i, label %body.i, label %after.i
    body.i:
      call void @f(i64 %i)
      %i.next = add nsw i64 %i, 1
      br label %head.i
    after.i:
    """
    for short, full in SHORT.items():
        text = re.sub(short, full, text)
    return text


def loads(fields: Sequence[tuple[str, str]]) -> str:
    """The lines that load all fields of `%table`.

    >>> loads([("count", "i64")])
    '  %count = i64 %table[0]'
    """
    return "\n".join(f"  %{name} = {kind} %table[{number}]" for number, (name, kind) in enumerate(fields))


def compiled_text(text: str) -> Callable[[int], object]:
    """The function `@kernel` of a text with short forms."""
    from .native import compile_text  # brings LLVM, which a machine may not have

    return compile_text(in_full(text))
