"""Files in and out: rows as svmlight text, Arrow stores and Parquet, and models with their certificates."""

from .data.dataset import Dataset, DataSpec, open_data, scan
from .data.formats import ReadOptions
from .data.formats.arrow.store import Store
from .data.formats.arrow.writing import write_store
from .data.formats.converting import convert
from .data.formats.feeds import ChunkFeed
from .data.formats.parquet import parquet_feed
from .data.formats.reading import read_data, stream_data
from .data.formats.svmlight.reading import read_svmlight
from .data.formats.svmlight.writing import write_svmlight
from .data.table import Table
from .models.model import Model, Proof
from .models.saving import load_model, save_model

__all__ = [
    "ChunkFeed",
    "DataSpec",
    "Dataset",
    "Model",
    "Proof",
    "ReadOptions",
    "Store",
    "Table",
    "convert",
    "load_model",
    "open_data",
    "parquet_feed",
    "read_data",
    "read_svmlight",
    "save_model",
    "scan",
    "stream_data",
    "write_store",
    "write_svmlight",
]
