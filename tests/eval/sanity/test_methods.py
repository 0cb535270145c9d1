"""Checks of methods: against captum and loops, and against what theory says of each method."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from captum.metrics import infidelity as captum_infidelity
from captum.metrics import sensitivity_max
from click.testing import CliRunner
from scipy.stats import spearmanr

from align.cli import cli
from align.extract import Extraction
from align.methods import make_method
from align.models.altered import disturbed, randomised
from align.pipeline import align_pairs
from data.errors import UsageError
from eval.sanity.invariance import (
    Settings,
    check_methods,
    check_rows,
    fadings,
    infidelity,
    max_sensitivity,
    noises,
)
from eval.sanity.methods import check
from eval.sanity.randomisation import FLOOR, Step, conclusions, pivoted, randomisation_rows, randomise, steps
from tests.tiny import tiny_model, tiny_pairs

SETTINGS = Settings(radius=0.2, samples=3, fade=0.7, fadings=4, seed=2)


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(4)]


@pytest.mark.parametrize("spec", ["attention", "gradient-x-input:sign=signed", "occlusion:sign=signed"])
def test_max_sensitivity_is_captums(model, encoded, spec):
    method = make_method(spec)
    with torch.no_grad():
        together = model.batch(encoded)
        found = max_sensitivity(model, together, method, method.scores(model, together), SETTINGS)
        for row, pair in enumerate(encoded[:3]):
            batch = model.batch([pair])
            clean = model.embed(batch)
            for t in range(len(pair.target)):
                draws = iter(noises(model, batch, SETTINGS))

                def explain(inputs, batch=batch, clean=clean, pair=pair, t=t):
                    (changed,) = inputs
                    noise = {pair.pair.id: (pair.source, (changed - clean)[0])}
                    with disturbed(model, noise):
                        return (method.scores(model, batch)[:, t],)

                def perturb(inputs, radius, draws=draws, pair=pair):
                    return inputs + next(draws)[pair.pair.id][1]

                theirs = sensitivity_max(
                    explain, clean, perturb_func=perturb, n_perturb_samples=3, max_examples_per_batch=1
                )
                assert float(found[row, t]) == pytest.approx(float(theirs), rel=1e-5)


@pytest.mark.parametrize("spec", ["attention", "integrated-gradients:steps=2:sign=signed"])
def test_infidelity_is_captums_by_the_mean_square(model, encoded, spec):
    method = make_method(spec)
    with torch.no_grad():
        together = model.batch(encoded)
        found = infidelity(method.scores(model, together), *fadings(model, together, SETTINGS))
        for row, pair in enumerate(encoded[:3]):
            batch = model.batch([pair])
            plain = method.scores(model, batch)
            shares, losses = fadings(model, batch, SETTINGS)
            clean = model.embed(batch)
            for t in range(len(pair.target)):

                def forward(present, clean=clean, batch=batch, t=t):
                    copies = batch.repeat(len(present))
                    return model.log_probs(copies, present[..., None] * clean)[:, t]

                def perturb(inputs, shares=shares):
                    return shares[:, 0], inputs - shares[:, 0]

                theirs = captum_infidelity(
                    forward,
                    perturb,
                    torch.ones(1, len(pair.source), dtype=torch.float64),
                    plain[:, t],
                    n_perturb_samples=SETTINGS.fadings,
                    normalize=True,
                )
                expected = float(theirs) / float((losses[:, 0, t] ** 2).mean())
                assert float(found[row, t]) == pytest.approx(expected, abs=1e-5)


def test_infidelity_by_loops():
    rng = np.random.default_rng(0)
    plain, shares, losses = rng.normal(size=(1, 2, 4)), rng.random((5, 1, 4)), rng.normal(size=(5, 1, 2))
    found = infidelity(*(torch.from_numpy(x) for x in (plain, shares, losses)))
    for t in range(2):
        foretold = [sum(shares[n, 0, s] * plain[0, t, s] for s in range(4)) for n in range(5)]
        scale = sum(f * losses[n, 0, t] for n, f in enumerate(foretold)) / sum(f * f for f in foretold)
        left = sum((scale * f - losses[n, 0, t]) ** 2 for n, f in enumerate(foretold))
        assert float(found[0, t]) == pytest.approx(left / sum(losses[n, 0, t] ** 2 for n in range(5)))
    perfect = torch.from_numpy(shares[..., None, :] @ plain.swapaxes(-1, -2))[..., 0, :]
    assert infidelity(torch.from_numpy(3 * plain), torch.from_numpy(shares), perfect).abs().max() < 1e-12
    empty = infidelity(torch.zeros(1, 2, 4), torch.from_numpy(shares).float(), torch.from_numpy(losses).float())
    assert empty.tolist() == [[1, 1]]


INVARIANT = {
    "attention": True,
    "vector-norm": True,
    "alti": True,
    "gradient-norm": True,
    "gradient-x-input:sign=signed": False,
    "lrp:sign=signed": False,
    "smoothgrad:samples=2": False,
    "integrated-gradients:steps=2:sign=signed": False,
    "integrated-gradients:steps=2:sign=signed:baseline=unk": True,
    "integrated-gradients:steps=2:sign=signed:baseline=mean": True,
    "occlusion:sign=signed": False,
    "occlusion:sign=signed:baseline=unk": True,
    "omission:sign=signed": True,
}


def test_invariance_is_what_theory_says(model, encoded):
    methods = [make_method(spec) for spec in INVARIANT]
    encoded = encoded[:2]
    found = check_methods(model, encoded, methods, SETTINGS, 1000)
    alone = check_methods(model, encoded, methods, SETTINGS, 1)
    rows = check_rows(found, encoded, 20, 0)
    assert [row["invariant"] for row in rows] == [*INVARIANT.values(), None]
    for row in rows[:-1]:
        assert row["implementation"] < 1e-6
        assert (row["completeness"] is not None) == row["method"].startswith("integrated")
        assert (row["sensitivity"] is None) == row["method"].startswith("omission")
        assert 0 <= row["infidelity"] <= 1
    assert rows[-1]["infidelity"] is not None
    for method, checks in found.items():
        for name, points in checks.items():
            for number, point in points.items():
                assert point == pytest.approx(alone[method][name][number], abs=1e-5, rel=1e-4)


def test_alpha_beta_depends_on_the_implementation(model, encoded):
    method = make_method("lrp:linear=alpha-beta:sign=signed")
    found = check_methods(model, encoded[:2], [method], SETTINGS, 1000)
    (row, _) = check_rows(found, encoded[:2], 0, 0)
    assert row["implementation"] > 0.01


def test_randomisation_by_loops(model, encoded):
    method = make_method("gradient-norm")
    found = randomise(model, encoded, [method], ["cascading", "independent"], 4, 1000)[method]
    names = ["output", "decoder 1", "decoder 0", "encoder 1", "encoder 0", "embeddings"]
    cascading = [Step("cascading", name, tuple(names[: n + 1])) for n, name in enumerate(names)]
    assert list(found)[:6] == cascading
    assert list(found)[6:12] == [Step("independent", name, (name,)) for name in names]

    def maps(random, seed):
        with randomised(model, random, seed):
            text = [pair.pair for pair in encoded]
            return [one.matrix for one in align_pairs(model, text, method, Extraction())]

    every = tuple(names)
    expected = {step: (maps((), 4), maps(step.random, 4)) for step in (cascading[2], list(found)[8])}
    expected[Step("cascading", FLOOR, every)] = (maps(every, 4), maps(every, 5))
    for step, (one, other) in expected.items():
        for rho, a, b in zip(found[step], one, other, strict=True):
            if a.shape[1] < 3:
                assert math.isnan(rho)
            else:
                rows = [spearmanr(x, y).statistic for x, y in zip(a, b, strict=True)]
                assert rho == pytest.approx(sum(rows) / len(rows), abs=1e-5)


def test_what_does_not_depend_on_the_model_is_named(model, encoded):
    """Attention knows nothing of the output layer; a method that counts pieces knows nothing of the model."""
    attention = make_method("attention")
    found = randomise(model, encoded, [attention], ["independent"], 0, 1000)
    rows = randomisation_rows(found, 20, 0)
    rho = {row["block"]: row["rho"] for row in rows}
    assert rho["output"] == pytest.approx(1)
    assert rho["encoder 0"] < 0.99
    assert pivoted(rows, "independent") == [{"method": "attention", **rho}]
    made = {"method": "m", "order": "cascading", "block": "embeddings", "rho": 0.9, "rho_low": 0.8}
    assert conclusions([made]) == ["m: maps stay (0.90) when all weights are random: they explain the input"]
    assert conclusions([{**made, "rho_low": 0.1}])[0].startswith("No method's maps stay")
    assert conclusions(rows) == []
    assert len(steps(model, ["cascading"])) == 6


def test_command(checkpoint):
    specs = "attention:layer=-1:position=awo,integrated-gradients:sign=signed:steps=2"
    arguments = ["sanity", "methods", "-m", checkpoint / "st.pt", "-i", checkpoint / "joint", "--methods", specs]
    more = ["--samples", 2, "--bootstrap", 20, "--limit", 3]

    def run(*form):
        return CliRunner().invoke(cli, [str(a) for a in [*arguments, *more, *form]], catch_exceptions=False).stdout

    report = json.loads(run("--format", "json"))
    assert len(report["randomisation"]) == 2 * (6 + 6 + 1)
    assert len(report["invariance"]) == 3
    assert "saliency (" in report["opening"][3]
    text = run("--checks", "independent,invariance")
    assert "Randomised, independent" in text
    assert "Randomised, cascading" not in text
    assert "infidelity: share" in text
    assert run("--format", "tsv", "--checks", "invariance").startswith("method\tmeasures\tshift\t")


def test_unknown_checks(model, encoded):
    with pytest.raises(UsageError, match="check"):
        check(model, encoded, [], ["invarience"], {"seed": 0}, 1000, 0)
