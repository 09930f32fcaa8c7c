"""Files in and out: svmlight text, Arrow stores, and models with their certificates."""

from .converting import convert
from .data import Data
from .model import Model, Proof, load_model, save_model
from .parquet import parquet_feed
from .reading import read_data, stream_data
from .store import Store
from .store_writing import write_store
from .streaming import ChunkFeed
from .svmlight import read_svmlight
from .svmlight_writing import write_svmlight

__all__ = [
    "ChunkFeed",
    "Data",
    "Model",
    "Proof",
    "Store",
    "convert",
    "load_model",
    "parquet_feed",
    "read_data",
    "read_svmlight",
    "save_model",
    "stream_data",
    "write_store",
    "write_svmlight",
]
