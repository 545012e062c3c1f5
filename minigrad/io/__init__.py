"""Files: weights, checkpoints, and models for other programs.

Everything read from a file is checked, and nothing is ever unpickled.  A file is written completely or not at all.

    mg.io.save_file(model.state_dict(), "model.safetensors")
    model.load_state_dict(mg.io.load_file("model.safetensors"))

    checkpoints = mg.io.Checkpoints("run", keep=3, model=model, optimizer=optimizer)
    for step in range(checkpoints.resume(), 1000):
        ...
        checkpoints.save(step + 1)

    mg.io.export_onnx(model, "model.onnx", example)
    model = mg.io.load_onnx("model.onnx")
"""

from ..arguments.public import public
from .checkpoints import Checkpoints, load_checkpoint, save_checkpoint
from .onnx.export import export_onnx
from .onnx.load import OnnxModel, load_onnx
from .tensors import TensorFile, load_file, open_file, save_file

__all__ = [
    "save_file", "load_file", "open_file", "TensorFile",
    "Checkpoints", "save_checkpoint", "load_checkpoint",
    "export_onnx", "load_onnx", "OnnxModel",
]

public(__all__, globals())
