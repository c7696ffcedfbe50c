"""Embedded retrieval over a corpus of `--rows` pairs: build, open, memory, search; and the same lists by SciPy.

The corpus consists of the real (turn, next turn) pairs of `--data`, then recombinations of their texts. Build and
searches run in separate processes, so that the reported memory is theirs. Peers in the same run: the exact scan (sparse
matrix of all rows times the vector of the text) and the same product over the transposed matrix, which only reads the
columns of the text's tokens. Both find the best k with ties by row; every list must be identical to the product's.
Clock and CPU seconds, which other load disturbs less.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks._corpora import make_corpus, make_queries
from benchmarks._texts import machine, spread
from retrieval.index import build, open_index
from retrieval.index.tokens import END, tokens, tokens_in_order


def resident() -> float:
    """Megabytes of this process in memory, including mapped files."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def time_call(work):
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def milliseconds(pairs: list[tuple[float, float]]) -> dict[str, float]:
    wall, processor = np.array(pairs).T * 1000
    return {
        "p50": float(np.median(wall)), "p95": float(np.quantile(wall, 0.95)), "max": float(wall.max()),
        "processor_p50": float(np.median(processor)), "processor_p95": float(np.quantile(processor, 0.95)),
    }  # fmt: skip


def build_here(corpus: Path, folder: Path) -> dict:
    built, wall, processor = time_call(lambda: build(corpus, folder))
    return {
        "count": built.count, "duplicates": built.duplicates, "seconds": wall, "processor_seconds": processor,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "mb_on_disk": sum(path.stat().st_size for path in folder.rglob("*")) / 1e6,
    }  # fmt: skip


def search_here(folder: Path, texts: list[str], k: int) -> dict:
    before = resident()
    index, opened, _ = time_call(lambda: open_index(folder))
    times, found = [], []
    for text in texts:
        hits, wall, processor = time_call(lambda text=text: index.search(text, k))
        times.append((wall, processor))
        found.append([[hit.row, hit.jaccard] for hit in hits])
    growth = resident() - before
    few = texts[:200]
    distinct = [time_call(lambda text=text: index.search(text, k, distinct=True))[1:] for text in few]
    words = [" ".join(text.split()[:3]) for text in few]
    free = [time_call(lambda text=text: index.find(text, 20))[1:] for text in words]
    report = {"open_seconds": opened, "resident_growth_mb": growth, "search_ms": milliseconds(times)}
    return {**report, "distinct_ms": milliseconds(distinct), "find_ms": milliseconds(free), "found": found}


class Peer:
    """Exact retrieval by products of sparse matrices."""

    def __init__(self, corpus: Path) -> None:
        from scipy import sparse

        vocabulary: dict[str, int] = {}
        columns, sizes = [], []
        with corpus.open(encoding="utf-8") as lines:
            while queries := [json.loads(line)["query"] for _, line in zip(range(1 << 15), lines, strict=False)]:
                numbers = [vocabulary.setdefault(token, len(vocabulary)) for token in tokens_in_order(queries)]
                numbers = np.array(numbers, np.int64)
                ends = numbers == vocabulary[END]
                keys = np.sort((np.cumsum(ends) << 32 | numbers)[~ends])
                keys = keys[np.concatenate(([True], np.diff(keys) != 0))]
                columns.append((keys & 0xFFFFFFFF).astype(np.int32))
                sizes.append(np.bincount(keys >> 32, minlength=len(queries)))
        self.sizes = np.concatenate(sizes)
        starts = np.concatenate(([0], np.cumsum(self.sizes)))
        flat = np.concatenate(columns)
        shape = (len(self.sizes), len(vocabulary))
        self.rows = sparse.csr_array((np.ones(len(flat), np.int32), flat, starts), shape=shape)
        self.columns = self.rows.T.tocsr()
        self.vocabulary = vocabulary

    def vector(self, text: str) -> tuple[np.ndarray, int]:
        wanted = tokens(text)
        return np.array([self.vocabulary[token] for token in wanted if token in self.vocabulary]), len(wanted)

    def scan(self, text: str, k: int) -> list[list]:
        known, size = self.vector(text)
        vector = np.zeros(len(self.vocabulary), np.int32)
        vector[known] = 1
        common = self.rows @ vector
        return self.best(np.arange(len(common)), common, size, k)

    def product(self, text: str, k: int) -> list[list]:
        from scipy import sparse

        known, size = self.vector(text)
        ones = np.ones(len(known), np.int32)
        vector = sparse.csr_array((ones, known, [0, len(known)]), shape=(1, len(self.vocabulary)))
        common = vector @ self.columns
        return self.best(common.indices, common.data, size, k)

    def best(self, rows: np.ndarray, common: np.ndarray, size: int, k: int) -> list[list]:
        values = common / (size + self.sizes[rows] - common)
        if len(values) > k:
            kept = values >= np.partition(values, -k)[-k]
            rows, values = rows[kept], values[kept]
        order = np.lexsort((rows, -values))[:k]
        found = zip(rows[order].tolist(), values[order].tolist(), strict=True)
        return [[row, value] for row, value in found if value]


def run_in_subprocess(*arguments: str) -> dict:
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3, help="of searching; the index is built once")
    parser.add_argument("--peer-queries", type=int, default=50, help="timed with the whole scan")
    parser.add_argument("--data", type=Path, help="folder of the real data sets (default: own sentences)")
    parser.add_argument("--folder", type=Path, help="where corpus and index are kept (default: a temporary folder)")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--here", choices=["build", "search"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        texts = json.loads((options.folder / "queries.json").read_text()) if options.here == "search" else []
        corpus, index = options.folder / "corpus.jsonl", options.folder / "index"
        print(
            json.dumps(build_here(corpus, index) if options.here == "build" else search_here(index, texts, options.k))
        )
        return

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        corpus = folder / "corpus.jsonl"
        if not corpus.exists():
            make_corpus(corpus, options.rows, options.data, options.seed)
        texts = make_queries(options.queries, options.data, options.seed)
        (folder / "queries.json").write_text(json.dumps(texts))
        built = run_in_subprocess("--here", "build", "--folder", str(folder))
        runs = []
        for _ in range(options.runs):
            runs.append(run_in_subprocess("--here", "search", "--folder", str(folder), "--k", str(options.k)))
        report = {
            "benchmark": "retrieval",
            "machine": machine(),
            "rows": built["count"],
            "seed": options.seed,
            "runs": options.runs,
            "build": built,
            **{name: spread([run[name] for run in runs]) for name in ("open_seconds", "resident_growth_mb")},
            **{
                kind: {name: spread([run[kind][name] for run in runs]) for name in runs[0][kind]}
                for kind in ("search_ms", "distinct_ms", "find_ms")
            },
        }
        if not options.no_peer:
            report |= compare_with_peers(Peer(corpus), texts, options.k, options.peer_queries, runs)
    print(json.dumps(report, indent=1))


def compare_with_peers(peer: Peer, texts: list[str], k: int, few: int, runs: list[dict]) -> dict:
    same, products, scans = 0, [], []
    for number, text in enumerate(texts):
        found, wall, processor = time_call(lambda text=text: peer.product(text, k))
        products.append((wall, processor))
        same += all(run["found"][number] == found for run in runs)
        if number < few:
            scanned, wall, processor = time_call(lambda text=text: peer.scan(text, k))
            scans.append((wall, processor))
            same -= scanned != found
    by_name = {"scan": milliseconds(scans), "product": milliseconds(products)}
    return {
        "identical_lists": f"{same} of {len(texts)}",
        "peer_ms": by_name,
        "times_faster": {
            name: {
                what: spread([by_name[name][what] / run["search_ms"][what] for run in runs])
                for what in ("p50", "p95", "processor_p50", "processor_p95")
            }
            for name in by_name
        },
    }


if __name__ == "__main__":
    main()
