"""PyTorch programs as they are: `from minigrad.compat import torch`, and nothing else changes.

`torch.txt` in `minigrad.support` is the table of PyTorch's signatures and of what minigrad computes for them.
PyTorch's methods of tensors (`x.view`, `x.size()`) hold in files that import `torch` from here: see `speaking`.
`python -m minigrad.compat train.py` and, in a notebook, `%load_ext minigrad.compat` answer `import torch` itself.
"""

from .finder import load_ipython_extension, unload_ipython_extension

__all__ = ["load_ipython_extension", "unload_ipython_extension"]
