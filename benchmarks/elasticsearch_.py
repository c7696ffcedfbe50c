"""Exact search in Elasticsearch: a million pairs, the best 100, with 1, 2 and 4 shards, against the embedded index.

Starts the tests' server (1 GB of memory), or uses the one in TEST_ELASTICSEARCH_URL. Reports documents per second
(complete: tokens, sending, merging), milliseconds per search as on a page, the server's CPU time per search, and the
number of queries with identical rows in identical order from both backends.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks._corpora import make_corpus, make_queries
from benchmarks._texts import machine, spread
from retrieval.index import build, open_index
from retrieval.index.elastic_server import Access, connect
from retrieval.index.elastic_writer import Row, drop, rebuild
from tests.services.run import start_servers


def server_seconds(url: str) -> float:
    """CPU time of the server's process so far."""
    stats = connect(url, Access()).nodes.stats(metric="process", filter_path="nodes.*.process.cpu.total_in_millis")
    return sum(node["process"]["cpu"]["total_in_millis"] for node in stats["nodes"].values()) / 1000


def measure(url: str, folder: Path, shards: int, loads: int, rounds: list[list[str]], k: int) -> dict[str, object]:
    where = f"{url}/benchmark-{shards}"
    rates: list[float] = []
    load_cpu: list[dict[str, float]] = []
    index: Any = open_index(folder)
    with index as embedded:
        for _ in range(loads):  # each replaces the previous one, as when a corpus is indexed again
            rows = (Row(hit.row, hit.query, hit.response, hit.meta) for hit in embedded.rows())
            before, started = server_seconds(url), time.process_time()
            loaded = rebuild(
                where, rows, language="en", tokenizer=embedded.tokenizer, shards=shards, access=Access(timeout=120)
            )
            rates.append(round(loaded.count / loaded.seconds))
            took = {"server": server_seconds(url) - before, "client": time.process_time() - started}
            load_cpu.append({side: round(seconds, 1) for side, seconds in took.items()})
        index = open_index(where, timeout=120)
        for text in rounds[0][: len(rounds[0]) // 4]:  # the server compiles frequently executed code
            index.search(text, k)
        times: list[list[float]] = []
        same, before = 0, server_seconds(url)
        for queries in rounds:
            times.append([])
            for text in queries:
                start = time.perf_counter()
                hits = index.search(text, k)
                times[-1].append(1000 * (time.perf_counter() - start))
                same += hits == embedded.search(text, k)
        asked = sum(map(len, rounds))
        spent = 1000 * (server_seconds(url) - before) / asked
    index.close()
    drop(where)

    def over_rounds(share: float) -> dict[str, object]:
        found = [round(float(np.percentile(one, share)), 1) for one in times]
        return {**spread(found), "in_turn": found}

    return {
        "shards": shards,
        "documents_per_second": {**spread(rates), "in_turn": rates},
        "load_seconds_of_the_processor": load_cpu,
        "p50_ms": over_rounds(50),
        "p95_ms": over_rounds(95),
        "longest_ms": round(max(map(max, times)), 1),
        "server_processor_ms_per_search": round(spent, 1),
        "identical_lists": f"{same} of {asked}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the data sets; else recombinations of own sentences")
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1000, help="drawn again for each run")
    parser.add_argument("--runs", type=int, default=3, help="one after the other on the same server")
    parser.add_argument("--loads", type=int, default=2, help="of the whole corpus, one after the other")
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("-k", type=int, default=100)
    parser.add_argument("--seed", type=int, default=13)
    options = parser.parse_args()
    with start_servers(["elasticsearch"], durable=True) as found, tempfile.TemporaryDirectory() as folder:
        url = found.get("TEST_ELASTICSEARCH_URL")
        if not url:
            sys.exit("There is no Elasticsearch to measure; the line above says why.")
        corpus, index = Path(folder) / "corpus.jsonl", Path(folder) / "index"
        make_corpus(corpus, options.pairs, options.data, options.seed)
        built = build(corpus, index)
        queries = make_queries(options.queries * options.runs, options.data, options.seed + 1)
        rounds = [queries[start :: options.runs] for start in range(options.runs)]
        for shards in options.shards:
            figures = measure(url, index, shards, options.loads, rounds, options.k)
            print(json.dumps({"pairs": built.count, "k": options.k, **figures, "machine": machine()}), flush=True)


if __name__ == "__main__":
    main()
