"""Files in and out: svmlight text, and models with their certificates."""

from .model import Model, Proof, load_model, save_model
from .svmlight import SvmlightData, read_svmlight

__all__ = ["Model", "Proof", "SvmlightData", "load_model", "read_svmlight", "save_model"]
