"""Data: datasets, loaders that bring their items in batches, and small real sets to begin with."""

from ..arguments.public import public
from .augment import Augmentation, Compose, Flip, Noise, Shift
from .bundled import airfoil, digits, karate, names
from .collate import pad
from .dataset import Dataset, Mapped, Subset, TensorDataset, random_split
from .errors import DataError
from .files import Alphabet, ImageFolder, Standardize, Table, TextLines, read_table
from .loader import DataLoader

__all__ = [
    "Dataset", "TensorDataset", "Mapped", "Subset", "random_split",
    "DataLoader", "pad",
    "Augmentation", "Compose", "Shift", "Flip", "Noise",
    "Table", "read_table", "Standardize", "ImageFolder", "TextLines", "Alphabet",
    "digits", "names", "karate", "airfoil",
    "DataError",
]

public(__all__, globals(), eager=("pad",))
