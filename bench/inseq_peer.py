"""Times inseq on pairs of a Hugging Face model, in an environment of its own (pip install inseq); prints JSON.

    INSEQ_PYTHON bench/inseq_peer.py MODEL PAIRS THREADS BATCH METHOD...

PAIRS holds `source<TAB>target` lines. Nothing of nmt-align is imported.
"""

import json
import sys
import time
from pathlib import Path

import inseq
import torch

folder, text, threads, batch, *methods = sys.argv[1:]
torch.set_num_threads(int(threads))
pairs = [line.split("\t") for line in Path(text).read_text(encoding="utf-8").splitlines()]
sources, targets = map(list, zip(*pairs, strict=True))
seconds = {}
for method in methods:
    model = inseq.load_model(folder, method, device="cpu")
    options = {"n_steps": 24} if method == "integrated_gradients" else {}
    settings = {"batch_size": int(batch), "show_progress": False, "pretty_progress": False, **options}
    model.attribute(sources[:1], targets[:1], **settings)
    start = time.perf_counter()
    model.attribute(sources, targets, **settings)
    seconds[method] = time.perf_counter() - start
model = inseq.load_model(folder, "input_x_gradient", device="cpu")
settings = {"batch_size": 1, "show_progress": False, "pretty_progress": False, "step_scores": ["probability"]}
found = model.attribute(sources[:1], targets[:1], **settings).sequence_attributions[0]
first_row = found.source_attributions[:, 0].sum(-1) / found.step_scores["probability"][0]  # of log p, [S]
probabilities = found.step_scores["probability"].tolist()
print(json.dumps({"seconds": seconds, "probabilities": probabilities, "first_row": first_row.tolist()}))
