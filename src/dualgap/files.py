"""Files in and out: svmlight text, Arrow stores, and models with their certificates."""

from .data.formats.arrow.store import Store
from .data.formats.arrow.writing import write_store
from .data.formats.converting import convert
from .data.formats.feeds import ChunkFeed
from .data.formats.parquet import parquet_feed
from .data.formats.reading import read_data, stream_data
from .data.formats.svmlight.reading import read_svmlight
from .data.formats.svmlight.writing import write_svmlight
from .data.table import Data
from .models.model import Model, Proof, load_model, save_model

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
