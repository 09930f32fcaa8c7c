"""Reuters-21578 in the ModApte split, from its SGML files: stems of words, present or not, 10,000 of them.

As in section 7: stemming, no removal of stop words, a binary bag of words. The paper follows Zhang and Oles
(2001), who choose features by information gain, summed over the categories.
"""

from __future__ import annotations

import html
import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...runtime.errors import InputError
from .. import generated, sets

ARCHIVE = "reuters21578-raw-sgm.tar.xz"
FEATURES = 10_000
_DOCUMENT = re.compile(r"<REUTERS(?P<head>[^>]*)>(?P<body>.*?)</REUTERS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>")
_WORD = re.compile(r"[a-z]+")


class Collection(NamedTuple):
    """Documents to train on and to test on, and which categories each belongs to."""

    name: str
    X: Any  # CSR
    topics: Any  # booleans, one column a category
    test: Any
    test_topics: Any
    categories: list[str]
    note: str


class Document(NamedTuple):
    """Words and categories of one text."""

    words: str
    topics: list[str]


def documents(archive: Path) -> tuple[list[Document], list[Document]]:
    """The 9,603 training and 3,299 test documents of the ModApte split."""
    parts: dict[str, list[Document]] = {"TRAIN": [], "TEST": []}
    for text in _files(archive):
        for found in _DOCUMENT.finditer(text):
            head, body = found["head"], found["body"]
            split = re.search(r'LEWISSPLIT="([A-Z-]+)"', head)
            if split is None or split[1] not in parts or 'TOPICS="YES"' not in head:
                continue
            listed = re.search(r"<TOPICS>(.*?)</TOPICS>", body, re.DOTALL)
            topics = _TOPIC.findall(listed[1]) if listed else []
            parts[split[1]].append(Document(_words(body), topics))
    return parts["TRAIN"], parts["TEST"]


def _files(archive: Path) -> Iterator[str]:
    with tarfile.open(archive) as opened:
        for member in sorted(opened.getmembers(), key=lambda member: member.name):
            stream = opened.extractfile(member)
            if stream is not None and member.name.endswith(".sgm"):
                yield stream.read().decode("latin-1")


def _words(body: str) -> str:
    """Title and body, or the whole text where it has neither."""
    found = re.findall(r"<(?:TITLE|BODY)>(.*?)</(?:TITLE|BODY)>", body, re.DOTALL)
    if not found:
        found = re.findall(r"<TEXT[^>]*>(.*?)</TEXT>", body, re.DOTALL)
    return html.unescape(" ".join(found)).lower()


def _stemmer() -> Any:
    try:
        from snowballstemmer import stemmer
    except ImportError:
        raise InputError("stemming needs the package snowballstemmer: pip install snowballstemmer") from None
    return stemmer("porter")


def _bags(texts: list[Document], stem: Any, known: dict[str, str]) -> list[set[str]]:
    bags = []
    for text in texts:
        words = set(_WORD.findall(text.words))
        for word in words - known.keys():
            known[word] = stem.stemWord(word)
        bags.append({known[word] for word in words})
    return bags


def information_gain(X: Any, topics: Any) -> Any:
    """What each binary feature tells about the categories, summed over these, in nats."""
    n = X.shape[0]
    present = np.asarray(X.sum(axis=0)).ravel()
    both = np.asarray(X.T @ topics.astype(np.float64))
    positive = topics.sum(axis=0)

    def part(joint: Any, row: Any, column: Any) -> Any:
        expected = np.maximum(row * column / n, 1e-300)
        return np.where(joint > 0, joint / n * np.log(np.maximum(joint, 1e-300) / expected), 0.0)

    row, column = present[:, None], positive[None, :]
    total = part(both, row, column) + part(row - both, row, n - column)
    total += part(column - both, n - row, column) + part(n - row - column + both, n - row, n - column)
    return total.sum(axis=1)


def _matrix(bags: list[set[str]], columns: dict[str, int]) -> Any:
    indices = [sorted(columns[word] for word in bag if word in columns) for bag in bags]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in indices])])
    flat = np.array([column for row in indices for column in row], dtype=np.int32)
    return sp.csr_matrix((np.ones(flat.size), flat, starts), shape=(len(bags), len(columns)))


def _marks(texts: list[Document], categories: list[str]) -> Any:
    place = {name: number for number, name in enumerate(categories)}
    marks = np.zeros((len(texts), len(categories)), dtype=bool)
    for row, text in enumerate(texts):
        for topic in text.topics:
            marks[row, place[topic]] = True
    return marks


def load(quick: bool) -> Collection:
    """The collection, or generated documents where it is not at hand or a sitting is quick."""
    folder = sets.folder()
    if quick or folder is None or not (folder / ARCHIVE).is_file():
        return _generated(600 if quick else 3000)
    training, test = documents(folder / ARCHIVE)
    categories = sorted({topic for text in (*training, *test) for topic in text.topics})
    stem = _stemmer()
    known: dict[str, str] = {}
    bags, test_bags = _bags(training, stem, known), _bags(test, stem, known)
    counts = Counter(word for bag in bags for word in bag)
    words = sorted(word for word, count in counts.items() if count >= 2)
    marks = _marks(training, categories)
    gain = information_gain(_matrix(bags, {word: i for i, word in enumerate(words)}), marks)
    kept = [words[i] for i in np.sort(np.argsort(-gain, kind="stable")[:FEATURES])]
    columns = {word: i for i, word in enumerate(kept)}
    note = (
        f"ModApte split, {len(training):,} and {len(test):,} documents, {len(categories)} categories "
        f"({int(marks.any(axis=0).sum())} with training documents), {len(kept):,} stems by information gain"
    )
    return Collection(
        "Reuters-21578",
        _matrix(bags, columns),
        marks,
        _matrix(test_bags, columns),
        _marks(test, categories),
        categories,
        note,
    )


def _generated(n: int) -> Collection:
    """Documents of ten overlapping topics, one of which has no training documents."""
    rng = np.random.default_rng(0)
    X, _ = generated.text_like(2 * n, 3000, 40, seed=1)
    X.data[:] = 1.0  # present or not
    tastes = rng.normal(size=(3000, 9)) * (rng.random((3000, 9)) < 0.05)
    scores = X @ tastes + 0.5 * rng.normal(size=(2 * n, 9))
    marks = np.zeros((2 * n, 10), dtype=bool)
    marks[:, :9] = scores > np.quantile(scores, np.linspace(0.7, 0.98, 9), axis=0).diagonal()
    marks[n : n + 2, 9] = True
    names = [f"topic {number}" for number in range(10)]
    note = f"Reuters-21578 is not used; {n:,} generated documents to train on, as many to test on"
    return Collection("documents (generated)", X[:n], marks[:n], X[n:], marks[n:], names, note)
