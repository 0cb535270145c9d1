"""Choosing by the agreement of both directions, against a naive search; in `choose`, `run` and `batch`."""

from __future__ import annotations

import pytest
import torch
from click.testing import CliRunner

from align.choose import agreement_rate, candidates, choose
from align.cli import cli
from align.extract import Extraction
from align.methods import compared_methods, make_method
from align.pipeline import align_pairs
from data.bitext import Pair
from data.errors import DataError, UsageError
from tests.tiny import SOURCE, TARGET, dictionary, tiny_model, tiny_module, tiny_pairs, tiny_settings

HOW = Extraction()


@pytest.fixture(scope="module")
def models():
    source, target = dictionary(SOURCE), dictionary(TARGET)
    return tiny_model(seed=3), tiny_model(seed=4, source=target, target=source)


def flipped(pairs):
    return [Pair(pair.id, pair.target, pair.source) for pair in pairs]


def twin(models, pairs, methods):
    """Every pair of methods with its agreement, counted link by link."""
    found = {}
    for ours in methods:
        forward = [a.links for a in align_pairs(models[0], pairs, ours, HOW)]
        for theirs in methods:
            reverse = [a.links for a in align_pairs(models[1], flipped(pairs), theirs, HOW)]
            common = total = 0
            for a, b in zip(forward, reverse, strict=True):
                common += sum((j, i) in b for i, j in a)
                total += len(a) + len(b)
            found[ours, theirs] = 2 * common / total
    return found


def test_choice_is_that_of_a_naive_search(models):
    pairs = [*tiny_pairs(6), Pair(6, (), ("t1",))]
    methods = compared_methods("attention", models[0])
    found = choose("auto(attention)", *models, pairs, HOW)
    expected = twin(models, pairs, methods)
    assert {(c.method, c.reverse_method): c.agreement for c in found} == pytest.approx(expected)
    rates = [c.agreement for c in found]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1]


def test_agreement_rate():
    assert agreement_rate([{(0, 0), (1, 1)}, set()], [{(0, 0)}, {(2, 2)}]) == 0.5
    assert agreement_rate([set()], [set()]) == 0.0


def test_candidates(models):
    model = models[0]
    encoded = [model.encode_pair(pair) for pair in tiny_pairs(3)]
    layers = candidates("vector-norm:layer=auto:position=awi", model, encoded)
    assert layers == [make_method(f"vector-norm:layer={n}:position=awi") for n in (0, 1)]
    both = candidates("attention:layer=auto:position=auto", model, encoded)
    assert both == compared_methods("attention", model)
    listed = candidates("auto(smoothgrad:samples=2:base=l1,mean(lrp,attention:layer=0))", model, encoded)
    assert [method.name for method in listed] == ["smoothgrad", "mean"]
    every = candidates("auto", model, encoded)
    names = {method.name for method in every}
    assert {"attention", "lrp", "occlusion", "gradient-norm"} <= names
    assert not names & {"smoothgrad", "integrated-gradients", "expected-gradients", "resampling", "flow"}
    assert all(m.evidence.passes(p).total <= len(p.source) + len(p.target) + 1 for m in every for p in encoded)
    with pytest.raises(UsageError, match="attention can choose layer, position by itself"):
        candidates("attention:heads=auto", model, encoded)
    with pytest.raises(UsageError, match="lrp can choose"):
        candidates("lrp", model, encoded)


def test_nothing_to_choose_on(models):
    with pytest.raises(DataError, match="no pair to choose on"):
        choose("auto(attention)", *models, [Pair(0, (), ("t1",))], HOW)


def test_elsewhere_a_method_must_be_settled():
    for spec in ("auto", "auto(lrp)", "attention:layer=auto", "mean(lrp,attention:layer=auto)"):
        with pytest.raises(UsageError, match="`nmt-align choose` names a method"):
            make_method(spec)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Checkpoints of both directions with dictionaries beside them, and text."""
    folder = tmp_path_factory.mktemp("choose")
    source, target = dictionary(SOURCE), dictionary(TARGET)
    for name, languages, sides in (("st", ("src", "tgt"), (source, target)), ("ts", ("tgt", "src"), (target, source))):
        module, *_ = tiny_module(len(name), *sides)
        named = dict(zip(("source_lang", "target_lang"), languages, strict=True))
        cfg = {"model": tiny_settings(**named), "task": named}
        torch.save({"cfg": cfg, "model": module.state_dict()}, folder / f"{name}.pt")
    source.save(str(folder / "dict.src.txt"))
    target.save(str(folder / "dict.tgt.txt"))
    pairs = tiny_pairs(8)
    (folder / "text").write_text("".join(f"{' '.join(p.source)} ||| {' '.join(p.target)}\n" for p in pairs))
    return folder


def invoke(folder, command, *more):
    arguments = [command, "-m", folder / "st.pt", "-i", folder / "text", *more]
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def test_run_takes_what_choose_names(folder):
    both = ["--reverse-model", folder / "ts.pt"]
    chosen = invoke(folder, "choose", *both, "--method", "attention:layer=auto:position=auto", "--top", 2)
    header, best, _ = [line.split("\t") for line in chosen.stdout.splitlines()]
    assert header == ["agreement", "method", "reverse_method"]
    by_hand = invoke(folder, "run", *both, "--method", best[1], "--reverse-method", best[2])
    by_itself = invoke(folder, "run", *both, "--method", "attention:layer=auto:position=auto")
    assert by_itself.stdout == by_hand.stdout
    assert by_itself.stdout.strip()
    assert f"chosen by agreement ({float(best[0]):.3f}): {best[1]}; {best[2]} for --reverse-model" in by_itself.stderr
    assert by_hand.stderr.splitlines()[-2] == by_itself.stderr.splitlines()[-2]  # the signature
    elsewhere = invoke(folder, "run", *both, "--method", "auto(attention)", "--tune-on", folder / "text")
    assert elsewhere.stdout == by_hand.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "auto"], "give --reverse-model"),
        (["--method", "lrp", "--tune-on", "x"], "--tune-on is for --method auto"),
        (["--method", "auto", "--reverse-method", "lrp"], "chooses --reverse-method too"),
        (["--method", "lrp", "--reverse-method", "lrp"], "--reverse-method needs --reverse-model"),
    ],
)
def test_options_that_do_not_fit(folder, options, message):
    error = invoke(folder, "run", *options).exception
    assert isinstance(error, UsageError)
    assert message in str(error)


def test_choosing_needs_both_models(folder):
    error = invoke(folder, "choose").exception
    assert isinstance(error, UsageError)
    assert "give --reverse-model" in str(error)
