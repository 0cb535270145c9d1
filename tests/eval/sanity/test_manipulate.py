"""The search for other attention: what it finds is attention, keeps predictions, and is found where it must be."""

from __future__ import annotations

import json

import pytest
import torch
from click.testing import CliRunner
from scipy.spatial.distance import jensenshannon

from align.cli import cli
from align.models.hf_loading import load_huggingface
from align.models.replacement import replaced_attention
from data.errors import AlignError
from eval.sanity.manipulate import Search, _Task, conclusions, jensen_shannon, manipulate, total_variation
from tests.align.models.hf_tiny import FAMILIES
from tests.align.models.hf_tiny import pairs as hf_pairs
from tests.tiny import tiny_model, tiny_pairs


@pytest.fixture(scope="module", params=["fairseq", "marian"])
def task(request, tmp_path_factory):
    """A model, and pairs of its own."""
    if request.param == "fairseq":
        model, text = tiny_model(), tiny_pairs(4)
    else:
        folder = tmp_path_factory.mktemp("hf")
        model = load_huggingface(folder, **FAMILIES[request.param](folder), dtype=torch.float64)
        text = hf_pairs(3)
    return model, [model.encode_pair(pair) for pair in text]


def test_distances_against_loops_and_scipy():
    torch.manual_seed(0)
    p, q = torch.rand(2, 5, 7, dtype=torch.float64).softmax(-1)
    for row in range(5):
        loop = sum(abs(float(p[row, k]) - float(q[row, k])) for k in range(7)) / 2
        assert float(total_variation(p, q)[row]) == pytest.approx(loop)
        assert float(jensen_shannon(p, q)[row]) == pytest.approx(jensenshannon(p[row], q[row]) ** 2)
    apart = torch.eye(2, dtype=torch.float64)
    assert total_variation(apart, apart.flip(0)).tolist() == [1, 1]
    assert jensen_shannon(apart, apart.flip(0)).tolist() == pytest.approx([0.6931471805599453] * 2)


@pytest.mark.parametrize("layers", [[0], [1], [0, 1]])
@pytest.mark.parametrize("distance", ["tv", "jsd"])
def test_what_is_found_keeps_every_prediction(task, layers, distance):
    model, encoded = task
    batch = model.batch(encoded)
    search = Search(0.05, 12, distance)
    work = _Task(model, batch, layers, search)
    weights = work.run(lambda: None)
    found = work.measure(weights)
    own = model.cross_attention(batch, layers)
    for row, pair in enumerate(encoded):
        size_t, size_s = len(pair.target), len(pair.source)
        theirs = weights[:, row, :, :size_t, :size_s]
        torch.testing.assert_close(theirs.sum(-1), torch.ones_like(theirs[..., 0]))
        assert (theirs >= 0).all()
        alone = model.batch([pair])
        before = model.logits(alone, model.decode(alone, model.encode(alone, model.embed(alone)))).softmax(-1)[0]
        given = {l_: lambda w, first, n=n, theirs=theirs: theirs[n][None] for n, l_ in enumerate(layers)}
        with replaced_attention(model, given):
            after = model.logits(alone, model.decode(alone, model.encode(alone, model.embed(alone)))).softmax(-1)[0]
        moved = [float((before[t] - after[t]).abs().sum() / 2) for t in range(size_t)]
        assert max(moved) <= 0.05 + 1e-6
        result = found[pair.pair.id]
        assert result.output_tv == pytest.approx(sum(moved), abs=1e-6)
        tv = moved_tops = 0.0
        for n in range(len(layers)):
            for t in range(size_t):
                a, b = (x.mean(0)[t] for x in (own[n, row, :, :size_t, :size_s], theirs[n]))
                tv += float((a - b).abs().sum() / 2) / len(layers)
                moved_tops += float(a.argmax() != b.argmax()) / len(layers)
        assert result.tv == pytest.approx(tv, abs=1e-6)
        assert result.moved == pytest.approx(moved_tops)
        assert result.pieces == size_t
    assert sum(f.tv for f in found.values()) > 0


def test_a_layer_that_carries_nothing_can_say_anything():
    model = tiny_model()
    model.module.decoder.layers[1].encoder_attn.v_proj.weight.zero_()
    encoded = [model.encode_pair(pair) for pair in tiny_pairs(4)]
    free = manipulate(model, encoded, [1], Search(0.01, 30), 1000)
    bound = manipulate(model, encoded, [0], Search(1e-9, 4), 1000)
    for pair, f, b in zip(encoded, free, bound, strict=True):
        if len(pair.source) > 2:
            assert f.tv / f.pieces > 0.5
            assert f.moved == f.pieces
            assert f.top_after < f.top_before / 2
        assert b.tv / b.pieces < 1e-3
        assert b.moved == 0


def test_batches_change_nothing(task):
    model, encoded = task
    together = manipulate(model, encoded, [0], Search(0.05, 5), 10_000)
    alone = manipulate(model, encoded, [0], Search(0.05, 5), 1)
    assert [f.tv for f in together] == pytest.approx([f.tv for f in alone], abs=1e-6)


def test_wrong_settings():
    for settings in ({"epsilon": 0.0}, {"steps": 0}, {"distance": "l2"}):
        with pytest.raises(AlignError):
            Search(**settings)


def test_command(checkpoint):
    arguments = ["sanity", "manipulate", "-m", checkpoint / "st.pt", "-i", checkpoint / "joint", "--format", "json"]
    more = ["--steps", 3, "--bootstrap", 20, "--limit", 4]
    result = CliRunner().invoke(cli, [str(a) for a in [*arguments, *more]], catch_exceptions=False)
    report = json.loads(result.stdout)
    assert [row["layers"] for row in report["rows"]] == ["all", "0", "1"]
    assert report["opening"][0] == "Asked: is there other attention that goes with the same predictions?"
    assert report["conclusions"] == conclusions(report["rows"], 0.05)
    assert all(row["output_tv"] <= 0.05 for row in report["rows"])
