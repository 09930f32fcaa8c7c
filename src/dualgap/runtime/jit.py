"""The only module that knows how Numba is configured. It uses Numba's public interface, but for what
``_KernelCache`` needs: a dispatcher's `_cache`, `rtsys`, and how a compiled function is taken apart.

- ``kernel`` compiles a hot loop: cached on disk, GIL released, IEEE division.
- ``inner`` lets kernels call a function, compiled into them; called from Python it is plain Python.
- ``kernel_type`` lets compiled kernels call the methods of a ``NamedTuple`` class (a loss, a kind of rows).
- ``prefetch`` asks the processor to fetch an array element that will be needed soon.
- ``product`` has all 128 bits of a product of two words, ``put_word`` stores 8 bytes at once.

Why ``NamedTuple`` and ``overload_method``: closures, dispatchers passed as arguments and jitclasses all
compile, but none of them ever hits the cache in the next process.

Why a cache of our own (``_KernelCache``, kept in files by ``kernel_cache``): Numba watches only the file that
a kernel is written in. After an edit of ``losses/margin.py`` it would go on serving machine code of the old
losses. So the stored code is known by a hash of everything that a kernel is made of: its own file, the files
of the kernels that its file imports, directly or not, and the files of the types whose methods it may call
(``TYPES``, with what those stand on).
"""

from __future__ import annotations

import functools
import gc
import hashlib
import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core import event as numba_event
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.extending import intrinsic, overload_method, register_jitable

from . import compiling
from .kernel_cache import SUFFIX, cache_root, folder_name, load, store

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

TYPES = (
    "runtime/jit.py",
    "runtime/half.py",
    "runtime/sums.py",
    "runtime/random.py",
    "runtime/decimals.py",
    "runtime/counts.py",
    "data/rows/common.py",
    "data/rows/csr.py",
    "data/rows/dense.py",
    "data/rows/batch.py",
    "core/losses/functions.py",
    "core/losses/margin.py",
    "core/losses/logistic.py",
    "core/losses/regression.py",
    "core/losses/offsets.py",
    "core/joint/contract.py",
    "core/joint/losses.py",
    "core/geometry.py",
    "core/bounds.py",
    "solvers/dual/gap_estimate.py",
    "solvers/order.py",
    "solvers/primal/rates.py",
    "solvers/primal/slopes.py",
    "solvers/primal/state.py",
)
"""Files of the classes that kernels are given as arguments (``kernel_type`` classes and other NamedTuples),
and of the kernels that their methods call.
"""

compiled: bool = not numba.config.DISABLE_JIT
"""False under ``NUMBA_DISABLE_JIT=1``, where the same code runs as plain Python."""


class _Locked(numba_event.Listener):  # type: ignore[misc]
    """Hears when a thread asks for the compiler, whose lock covers compiling and loading from the cache."""

    def on_start(self, event: Any) -> None:
        compiling.began()

    def on_end(self, event: Any) -> None:
        compiling.ended()


class _Compiled(numba_event.Listener):  # type: ignore[misc]
    """Hears when a function is compiled because the cache does not have it."""

    def on_start(self, event: Any) -> None:
        compiling.announce()

    def on_end(self, event: Any) -> None:
        pass


numba_event.register("numba:compiler_lock", _Locked())
numba_event.register("numba:compile", _Compiled())


def made_of(namespace: dict[str, Any], found: set[str] | None = None) -> set[str]:
    """Files of the kernels in a module's namespace, and of those that they in turn may call."""
    found = set() if found is None else found
    for value in namespace.values():
        function: Any = value.py_func if isinstance(value, Dispatcher) else value
        if inspect.isfunction(function) and (function is not value or function in _inner):
            file = function.__code__.co_filename
            if file not in found:
                found.add(file)
                made_of(function.__globals__, found)
    return found


@functools.cache
def _digest(file: str) -> bytes:
    """A hash of a source file, as it was when it was imported: an edit under way must not be taken for
    the code in memory.
    """
    return hashlib.sha256(Path(file).read_bytes()).digest()


_OF_TYPES = [_digest(str(Path(__file__).parents[1] / name)) for name in TYPES]


class _KernelCache(NullCache):  # type: ignore[misc]
    """Where Numba looks for the machine code of one kernel before compiling it, and stores it afterwards.

    Numba's own cache keeps an index for each kernel. Processes that compile a kernel for different arguments
    at once can leave an index that has one's arguments point to the other's code (both take the next free
    number for it), it writes even where it only reads, and a full disk or a damaged file ends the program.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        name = f"{function.__module__.removeprefix('dualgap.')}.{function.__qualname__}"
        self._name = re.sub(r"[^\w.]", "", name)
        _digest(function.__code__.co_filename)

    @property
    def cache_path(self) -> str:
        return str(cache_root() / folder_name(numba.__version__))

    @functools.cached_property
    def _stamp(self) -> str:
        """Of the contents of all files that the kernel is made of. Names are left out: a moved package keeps
        its cache.
        """
        files = made_of(self._function.__globals__) | {self._function.__code__.co_filename}
        return hashlib.sha256(b"".join(sorted([*_OF_TYPES, *map(_digest, files)]))).hexdigest()[:16]

    def _key(self, signature: Any, context: Any) -> Any:
        return signature, context.codegen().magic_tuple(), self._function.__code__.co_code

    def _file(self, key: Any) -> Path:
        """Types that look alike share a file, so it holds the key as well."""
        hashed = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return Path(self.cache_path) / f"{self._name}-{self._stamp}-{hashed}{SUFFIX}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # All that machine code of kernels refers to (strings, say, need more). Numba's own cache calls
        # `refresh`, which imports and registers what only compiling needs, for 0.15 s.
        rtsys.initialize(target_context)
        key = self._key(sig, target_context)
        content = load(self._file(key))
        if content is None:
            return None
        try:
            stored, reduced = pickle.loads(content)
        except (AttributeError, ImportError):  # of a class that this process does not have
            return None
        return CompileResult._rebuild(target_context, *reduced) if stored == key else None

    def save_overload(self, sig: Any, data: Any) -> None:
        if data.library.has_dynamic_globals or self._function.__closure__:  # not to be known by its files
            return
        key = self._key(sig, data.target_context)
        store(self._file(key), dumps((key, data._reduce())))


@overload
def kernel(function: F, /) -> F: ...
@overload
def kernel(function: None = None, /, **options: Any) -> Callable[[F], F]: ...
def kernel(function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
    """Compile a hot loop: cached on disk, GIL released, IEEE division."""
    if function is None:
        return functools.partial(kernel, **options)
    dispatcher: Any = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    if compiled:
        dispatcher._cache = _KernelCache(function)
    return dispatcher  # type: ignore[no-any-return]


# What only kernels call compiles in four fifths of the time without wrappers for Python and C.
_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_inner: set[Callable[..., Any]] = set()


@overload
def inner(function: F, /) -> F: ...
@overload
def inner(function: None = None, /, **options: Any) -> Callable[[F], F]: ...
def inner(function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
    """Let kernels call a function: it is compiled into each of them. Called from Python it is plain Python.

    It is always inlined: an array handed to a function that is not costs two atomic operations in every call.
    """
    if function is None:
        return functools.partial(inner, **options)
    _inner.add(function)
    _digest(function.__code__.co_filename)
    register_jitable(forceinline=True, **_NO_WRAPPERS, **options)(function)
    return function


class _Collector(numba_event.Listener):  # type: ignore[misc]
    """Keeps the garbage collector off while kernels of this package compile, which saves a tenth of the time.

    A compilation makes hundreds of thousands of objects that stay, and the collector goes through them again
    and again. Numba reports compilations under its global lock, so no two threads are in here at once.
    """

    depth = 0
    was_on = False

    def _is_ours(self, reported: Any) -> bool:
        module = reported.data["dispatcher"].py_func.__module__
        return str(module).partition(".")[0] == __name__.partition(".")[0]

    def on_start(self, event: Any) -> None:
        """A compilation begins, perhaps within another."""
        if self._is_ours(event):
            if self.depth == 0:
                self.was_on = gc.isenabled()
                gc.disable()
            self.depth += 1

    def on_end(self, event: Any) -> None:
        """It has ended, perhaps with an error."""
        if self._is_ours(event):
            self.depth -= 1
            if self.depth == 0 and self.was_on:
                gc.enable()


if compiled:
    numba_event.register("numba:compile", _Collector())

_methods: dict[
    str, tuple[set[type], list[str]]
] = {}  # method name -> (the classes that have it, its parameters)


def kernel_type(cls: C) -> C:
    """Let compiled kernels call the public methods of a ``NamedTuple`` class.

    A method has the same parameters in every class that has it, and no field of any class shares its name.
    """
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if name.startswith("_"):
            continue
        parameters = list(inspect.signature(method).parameters)
        if name not in _methods:
            _methods[name] = (set(), parameters)
            _attach(name, method)
        classes, expected = _methods[name]
        if parameters != expected:
            raise TypeError(f"{cls.__name__}.{name} takes {parameters}, elsewhere {expected}")
        classes.add(cls)
    return cls


def _attach(name: str, method: Callable[..., Any]) -> None:
    classes = _methods[name][0]

    def implement(self: Any, *args: Any) -> Any:
        return getattr(self.instance_class, name) if self.instance_class in classes else None

    implement.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]  # Numba rejects a bare *args
    options = {"forceinline": True, **_NO_WRAPPERS}
    for tuple_type in (types.NamedTuple, types.NamedUniTuple):
        overload_method(tuple_type, name, jit_options=options)(implement)


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        native = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        address = builder.bitcast(builder.gep(native.data, [arguments[1]]), byte)
        function_type = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        read, keep, data = (ir.Constant(word, value) for value in (0, 3, 1))
        builder.call(function, [address, read, keep, data])
        return context.get_dummy_value()

    return types.void(array, index), generate


def _no_prefetch(array: Any, index: Any) -> None:
    """Plain Python has nothing to prefetch."""


prefetch: Callable[[Any, Any], None] = _prefetch if compiled else _no_prefetch


@intrinsic  # type: ignore[untyped-decorator]
def _product(typing_context: Any, a: Any, b: Any, plus: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, double = ir.IntType(64), ir.IntType(128)
        first, second, third = (builder.zext(argument, double) for argument in arguments)
        result = builder.add(builder.mul(first, second), third)
        high = builder.trunc(builder.lshr(result, ir.Constant(double, 64)), word)
        return context.make_tuple(builder, signature.return_type, [high, builder.trunc(result, word)])

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64, types.uint64), generate


def _plain_product(a: Any, b: Any, plus: Any) -> Any:
    """The two words of ``a b + plus``, which always fits, high and low; all are uint64."""
    high, low = divmod(int(a) * int(b) + int(plus), 1 << 64)
    return np.uint64(high), np.uint64(low)


@intrinsic  # type: ignore[untyped-decorator]
def _put_word(typing_context: Any, array: Any, index: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        native = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(native.data, [arguments[1]]), ir.IntType(64).as_pointer())
        builder.store(arguments[2], address, align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), generate


def _plain_put_word(array: Any, index: Any, word: Any) -> None:
    """Store a uint64 as 8 elements of an array of bytes, the lowest first; room is not checked for."""
    array[index : index + 8] = np.frombuffer(int(word).to_bytes(8, "little"), dtype=np.uint8)


product: Callable[[Any, Any, Any], Any] = _product if compiled else _plain_product
put_word: Callable[[Any, Any, Any], None] = _put_word if compiled else _plain_put_word
