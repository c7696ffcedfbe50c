"""One of two processes that train together. Only the first is asked for texts and passes its decision to the second.
Prints its result as JSON."""

from __future__ import annotations

import json
import os
import sys

import torch
from transformers import Trainer

from evalapp.client.callback import ComparativeStopping
from tests.evalapp.client.tiny import ByNumber, Numbers, Rows, arguments, tiny


def main(folder: str) -> None:
    torch.set_num_threads(1)
    # By its own texts the second process would never stop, and would wait for the first.
    first = os.environ["RANK"] == "0"
    generate = Numbers(2, 3, 1, 0.5) if first else Numbers(*range(20))
    callback = ComparativeStopping(ByNumber(), ["x"], generate=generate, patience=2)
    settings = arguments(folder, max_steps=8, save_total_limit=None, ddp_backend="gloo", ddp_timeout=60)
    trainer = Trainer(tiny(), settings, train_dataset=Rows(), eval_dataset=Rows(), callbacks=[callback])
    trainer.train()
    found = {
        "asked": len(generate.modes),
        "step": trainer.state.global_step,
        "stopped": callback.stopped,
        "best": callback.best_step,
        "folder": callback.best_checkpoint and callback.best_checkpoint.name,
        "weights": [float(part.detach().double().sum()) for part in trainer.model.parameters()],
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
