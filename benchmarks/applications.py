"""The seven examples: seconds and scores, eager and compiled, for several seeds; and the GPT against PyTorch's.

`--rounds` is the number of seeds.  The seconds cover a whole run, including reading data, tracing and compiling.
The matrices are small: on a busy machine, OMP_NUM_THREADS=1 is many times faster.

    python3 course bench applications
    python3 course bench applications --only names_gpt --rounds 1
"""

from __future__ import annotations

import contextlib
import fnmatch
import io
import statistics
import time
from typing import Any

from _harness import Options, facts, options, text_of

import minigrad as mg
from minigrad.examples import EXAMPLES, Example, names_gpt, run


def measured(name: str, jit: bool, seed: int, opts: Options) -> tuple[float, float]:
    """The seconds of a run, and its score."""
    begun = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        score = run(name, jit, opts.device, opts.smoke, seed)
    return time.perf_counter() - begun, score


def row(name: str, example: Example, opts: Options) -> str:
    """A line of the table."""
    runs = {jit: [measured(name, jit, seed, opts) for seed in range(opts.rounds)] for jit in (False, True)}
    seconds = [text_of(statistics.median(s for s, _ in runs[jit])) for jit in (False, True)]
    scores = [score for _, score in runs[True]]
    differ = max(abs(a - b) for (_, a), (_, b) in zip(runs[False], runs[True]))
    worst = max(scores) if example.less_is_better else min(scores)
    verdict = "ok" if example.reached(worst, opts.smoke) else "**missed**"
    number = example.quick_goal if opts.smoke else example.goal
    goal = f"{'≤' if example.less_is_better else '≥'} {number:g} {example.unit}"
    listed = ", ".join(f"{score:.4g}" for score in scores)
    return f"| {name} | {seconds[0]} | {seconds[1]} | {listed} | {goal} | {verdict} | {differ:.1g} |"


def beside_torch(torch: Any, dropout: float, opts: Options) -> str:
    """Both libraries train the same GPT from the same weights on the same batches, and are scored on the same names."""
    epochs, width = (1, 16) if opts.smoke else (8, 64)
    known, held_out = mg.data.names()
    alphabet = mg.data.Alphabet(known)
    mg.random.seed(0)
    ours = names_gpt.GPT(len(alphabet), width, heads=4, layers=2, dropout=dropout)
    loader, same = (names_gpt.batches(known, alphabet) for _ in range(2))
    same.seed = loader.seed
    theirs = torch_gpt(torch, len(alphabet), width, dropout)
    theirs.load_state_dict({name: torch.from_numpy(value.numpy_copy()) for name, value in ours.state_dict().items()})
    seconds = []
    for train in (lambda: names_gpt.train(ours, loader, epochs, jit=True),
                  lambda: torch_train(torch, theirs, same, epochs)):
        begun = time.perf_counter()
        with contextlib.redirect_stderr(io.StringIO()):
            train()
        seconds.append(text_of(time.perf_counter() - begun))
    rows = names_gpt.rows_of(held_out, alphabet)
    ours.eval(), theirs.eval()
    with mg.no_grad(), torch.no_grad():
        scores = ours.loss(mg.asarray(rows)).item(), torch_loss(torch, theirs, torch.from_numpy(rows)).item()
    off = abs(scores[0] - scores[1])
    verdict = "ok" if off <= 0.02 else "**over**"
    return f"| {dropout:g} | {scores[0]:.4f} | {scores[1]:.4f} | {off:.4f} | {verdict} | {' | '.join(seconds)} |"


def torch_gpt(torch: Any, letters: int, width: int, dropout: float) -> Any:
    """The model of the example in PyTorch, with the same names of weights."""
    nn = torch.nn

    class Places(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(names_gpt.LENGTH, width))

        def forward(self, x: Any) -> Any:
            return x + self.weight

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(letters, width), Places()
            self.blocks = nn.ModuleList([
                nn.TransformerEncoderLayer(width, 4, 4 * width, dropout, "gelu", batch_first=True, norm_first=True)
                for _ in range(2)
            ])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

        def forward(self, letters: Any) -> Any:
            x = self.places(self.letters(letters))
            mask = nn.Transformer.generate_square_subsequent_mask(names_gpt.LENGTH)
            for block in self.blocks:
                x = block(x, src_mask=mask, is_causal=True)
            return self.head(self.norm(x))

    return GPT()


def torch_loss(torch: Any, model: Any, rows: Any) -> Any:
    before, after = rows[:, :-1], rows[:, 1:]
    counted = (before > 0) | (torch.arange(names_gpt.LENGTH) == 0)
    targets = torch.where(counted, after, -1).reshape(-1)
    return torch.nn.functional.cross_entropy(model(before).flatten(0, 1), targets, ignore_index=-1)


def torch_train(torch: Any, model: Any, loader: Any, epochs: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, betas=(0.9, 0.99), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=5e-3, total_steps=epochs * len(loader) + 1, cycle_momentum=False
    )
    for _ in range(epochs):
        for (rows,) in loader:
            optimizer.zero_grad()
            torch_loss(torch, model, torch.from_numpy(rows.numpy_copy())).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=3)
    head = "| example | eager | jit | scores of the seeds, jit | goal | | eager and jit differ by |"
    lines = [head, "|---" * 7 + "|"]
    for name, example in EXAMPLES.items():
        if fnmatch.fnmatch(name, "karate_gcn" if opts.smoke else opts.only):  # tests/examples runs all of them
            lines.append(row(name, example, opts))
    if opts.has("torch") and fnmatch.fnmatch("names_gpt", opts.only):
        torch = opts.library("torch")
        lines += ["", "| names_gpt, dropout | minigrad (jit), nats | torch, nats | differ by | | minigrad | torch |"]
        lines += ["|---" * 7 + "|", *[beside_torch(torch, dropout, opts) for dropout in (0.0, 0.1)]]
    text = "\n".join(["## Applications", "", facts(opts), *lines, ""])
    print(text)
    return text


if __name__ == "__main__":
    main()
