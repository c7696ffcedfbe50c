"""The points at which a test can make a worker die."""

from __future__ import annotations

#: The variable with the file in which a test names the point where the next process dies: `POINT NUMBER TIMES`. It dies
#: on the NUMBERth visit to the point; the file is deleted when TIMES processes have died.
ORDER = "EVALAPP_TEST_DIE_AT"
#: Instead of TIMES: the process freezes with all its threads until it is continued.
FREEZE = "freeze"

#: Name -> module, function, and whether the process dies before, after or halfway through a call of the function.
POINTS = {
    "import: rows are staged": ("annotation.pipelines.imports", "_Import._check", "before"),
    "import: rows are checked": ("annotation.pipelines.imports", "_Import._store", "before"),
    "import: half is in the tables": ("annotation.pipelines.import_store", "Promotion._outputs", "before"),
    "import: all is in the tables": ("annotation.pipelines.imports", "promote", "after"),
    "import: the tables are committed": ("annotation.services.uploads", "remove_files", "before"),
    "import: faults are stored": ("annotation.services.uploads", "remove_files", "before"),
    "score: a chunk is stored": ("scoring.pipelines.score", "store_scores", "after"),
    "score: all chunks are stored": ("scoring.pipelines.score", "finish_score_set", "before"),
    "score: the set is finished": ("scoring.pipelines.score", "cache_columns", "after"),
    "train: a checkpoint is half written": ("scoring.ml.training.finetune", "_Keeper.on_save", "before"),
    "train: a phase is over": ("scoring.pipelines.train", "publish", "before"),
    "train: the artefact is half written": ("scoring.ml.trained", "write_artefact", "after"),
    "train: the artefact is written": ("scoring.pipelines.publishing", "publish_evaluator", "before"),
    "train: the row is written": ("scoring.pipelines.train", "publish", "after"),
    "select-references: a line is half written": ("scoring.pipelines.reference_selection", "Selection._append", "half"),
    "select-references: half is in the tables": ("scoring.services.reference_selection", "insert_rows", "after"),
    "select-references: all is in the tables": ("scoring.pipelines.reference_selection", "_store", "after"),
    "export: tables are written": ("annotation.pipelines.exports", "write_export", "after"),
    "export: the card is not written": ("annotation.pipelines.exports", "write_card", "before"),
    "export: the archive is half written": ("zipfile", "ZipFile.write", "after"),
    "any: the end is not written": ("evalapp.common.runner", "finish_run", "before"),
}  # fmt: skip
