"""fairseq's multilingual tasks (M2M-100, NLLB-200, mBART): tags where training has them, and never words."""

from __future__ import annotations

import pytest
import torch

from align.extract import Extraction
from align.methods import make_method
from align.methods.rows import gradient_rows
from align.models.fairseq_languages import Around, read_around
from align.models.fairseq_loading import load_fairseq
from align.models.subwords import joined_bpe
from align.pipeline import align_pairs
from data.errors import ModelError, UsageError
from tests.fairseq_training import load_trained, observed, trained, validation_pairs
from tests.tiny import SOURCE, TARGET, dictionary, tiny_module, tiny_pairs, tiny_settings

DE, EN = 24, 25  # ids of the tags of the trained models
AROUND = {
    "m2m": Around((DE,), (2,), (EN,), (2,), 2),
    "mbart50": Around((DE,), (2,), (EN,), (2,), 2),
    "replacing": Around((), (DE,), (), (2,), EN),
    "mbart25": Around((), (2, DE), (), (2, EN), EN),
    "mbart25_bos": Around((0,), (2, DE), (0,), (2, EN), EN),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("trained"), *AROUND)


@pytest.fixture(scope="module", params=AROUND)
def task(request):
    return request.param


@pytest.fixture(scope="module")
def model(folder, task):
    return load_trained(folder, task)


def test_ids_and_answers_are_those_of_training(folder, task, model):
    assert model.around == AROUND[task]
    mine = {(pair.source, pair.prefix, pair.target): pair for pair in map(model.encode_pair, validation_pairs(folder))}
    rows = observed(folder, task)
    assert len(rows) > 1
    for row in rows:
        batch = model.batch([mine[row.source, row.prefix, row.target]])
        assert torch.allclose(model.log_probs(batch, model.embed(batch))[0], row.log_probs.double(), atol=1e-5)
        weights = model.cross_attention(batch, [1])[0].mean(1)[0]
        assert torch.allclose(weights, row.attention.double(), atol=1e-5)


def test_tags_are_no_words_and_rows_are_right(folder, model):
    """AWI of a word is the row that reads its last piece, AWO the row that predicts it, whatever comes first."""
    pairs = validation_pairs(folder)[:4]
    attention = {position: make_method(f"attention:layer=1:position={position}") for position in ("awo", "awi")}
    for pair, awo, awi in zip(
        pairs,
        *(align_pairs(model, iter(pairs), a, Extraction(pooling="piece")) for a in attention.values()),
        strict=True,
    ):
        encoded = model.encode_pair(pair)
        around = model.around
        before, after = len(around.target_before), len(around.target_after)
        assert encoded.target_word_of[:before] == (-1,) * before
        assert encoded.target_word_of[-after:] == (-1,) * after
        first = len(around.source_before)
        words = range(first, len(encoded.source) - len(around.source_after))
        weights = model.cross_attention(model.batch([encoded]), [1])[0, 0].mean(0)  # [T, S]
        for found, shift in ((awo, 0), (awi, 1)):
            expected = set()
            for t, j in enumerate(encoded.target_word_of):
                if j >= 0:
                    row = encoded.prefix.index(encoded.target[t], t + 1) if shift else t
                    best = max(words, key=lambda s, row=row: weights[row, s])
                    expected.add((encoded.source_word_of[best], j))
            assert found.links == expected


def test_gradients_by_finite_differences(folder, model):
    batch = model.batch([model.encode_pair(validation_pairs(folder)[0])])
    x = model.embed(batch)
    g, _ = gradient_rows(model, batch, x, lambda chunk: chunk.permute(3, 0, 1, 2))  # [D, B, T, S]
    for s in range(x.shape[1]):
        step = torch.zeros_like(x)
        step[0, s] = 1e-5 * torch.arange(1, x.shape[2] + 1)
        up, down = model.log_probs(batch, x + step), model.log_probs(batch, x - step)
        slope = torch.einsum("dt,d->t", g[:, 0, :, s], step[0, s])
        assert torch.allclose(slope, (up - down)[0] / 2, rtol=1e-3, atol=1e-8)


def test_translations_have_no_tags_and_change_nothing(folder, model):
    pair = model.encode_pair(validation_pairs(folder)[0])
    before = model.cross_attention(model.batch([pair]), [0, 1])
    symbols = {*(f"[{language}]" for language in ("de", "en")), "__de__", "__en__", "<s>", "</s>", "<mask>"}
    sources = [("s1", "s2"), ("s3", "s4")]
    translations = model.translate(sources, beam=3)
    assert translations == [model.translate([source], beam=3)[0] for source in sources]
    assert not symbols & {word for words in translations for word in words}
    assert torch.equal(model.cross_attention(model.batch([pair]), [0, 1]), before)


def multilingual(folder, **options):
    symbols = [*SOURCE, *TARGET]
    tagged = dictionary(symbols)
    for language in ("de", "en"):
        tagged.add_symbol(f"__{language}__")
    module, *_ = tiny_module(source=tagged, target=tagged)
    dictionary(symbols).save(str(folder / "dict"))
    task = {"_name": "translation_multi_simple_epoch", "langs": ["de", "en"], "lang_tok_style": "multilingual"}
    cfg = {"model": tiny_settings(), "task": task | options}
    torch.save({"cfg": cfg, "model": module.state_dict()}, folder / "model.pt")


def load_multilingual(folder, *languages):
    files = (folder / "dict", folder / "dict")
    return load_fairseq(folder / "model.pt", files, lambda s, t: (joined_bpe, joined_bpe), languages=languages)


@pytest.mark.parametrize(("encoder", "first"), [("src", "de"), ("tgt", "en"), (None, None)])
def test_language_tokens(tmp_path, encoder, first):
    multilingual(tmp_path, encoder_langtok=encoder, decoder_langtok=True)
    model = load_multilingual(tmp_path, "de", "en")
    pair = model.encode_pair(tiny_pairs(1)[0])
    tags = [model.source_dictionary.index(f"__{first}__")] if first else []
    assert list(pair.source[: len(tags)]) == tags
    assert pair.source_word_of[: len(tags)] == (-1,) * len(tags)
    assert pair.source_word_of[len(tags)] == 0
    assert pair.target[0] == pair.prefix[1] == model.target_dictionary.index("__en__")
    assert pair.target_word_of[:2] == (-1, 0)
    assert pair.prefix[1:] == pair.target[:-1]


def test_languages_of_a_multilingual_model(tmp_path):
    multilingual(tmp_path, encoder_langtok="src", decoder_langtok=True)
    with pytest.raises(UsageError, match="give --target-lang, one of de, en"):
        load_multilingual(tmp_path, "de", None)
    with pytest.raises(UsageError, match="unknown source language 'dd'"):
        load_multilingual(tmp_path, "dd", "en")


def config(**more):
    task = {"task": "translation_multi_simple_epoch", "lang_tok_style": "multilingual", "encoder_langtok": "src"}
    return task | {"decoder_langtok": True} | more


def around(settings, folder, languages=("de", "en")):
    source, target = dictionary(SOURCE), dictionary(SOURCE)
    return source, read_around(settings, source, target, languages, folder)


def test_the_list_of_languages_is_found_where_fairseq_has_it(tmp_path):
    (tmp_path / "list.txt").write_text("fr\nde\nen\n")
    cases = [({"langs": "de,en,fr"}, ["de", "en", "fr"]), ({"lang_pairs": "fr-en,en-de"}, ["de", "en", "fr"])]
    cases += [({"lang_dict": "/elsewhere/list.txt"}, ["fr", "de", "en"])]
    for given, expected in cases:
        source, _ = around(config(**given), tmp_path)
        assert source.symbols[-3:] == [f"__{language}__" for language in expected]
    with pytest.raises(ModelError, match="its languages from a file: put missing"):
        around(config(lang_dict="/elsewhere/missing.txt"), tmp_path)
    with pytest.raises(ModelError, match="does not say its languages"):
        around(config(), tmp_path)


def test_tags_of_other_options(tmp_path):
    langs = {"langs": ["de", "en"]}
    source, found = around(config(**langs, langtoks_main=["tgt", None]), tmp_path)
    assert (found.source_before, found.target_before) == ((source.index("__en__"),), ())
    source, found = around(
        config(**langs, langtoks_specs=["main", "mined"], langtoks_main=["src.mined", "tgt"]), tmp_path
    )
    assert found.source_before == (source.index("__de_mined__"),)
    source, _ = around(config(**langs, add_data_source_prefix_tags=True), tmp_path)
    assert source.symbols[-3:] == ["<MINED_DATA>", "<MMT_BT_DATA>", "<SMT_BT_DATA>"]
    _, found = around(
        config(**langs, encoder_langtok=None, decoder_langtok=False, lang_tok_replacing_bos_eos=True), tmp_path
    )
    assert found == Around((), (2,), (), (2,), 2)


def test_tags_that_langtoks_names(tmp_path):
    multilingual(tmp_path, langtoks={"main": ("tgt", None)}, encoder_langtok="src", decoder_langtok=True)
    model = load_multilingual(tmp_path, "de", "en")
    assert model.around == Around((model.source_dictionary.index("__en__"),), (2,), (), (2,), 2)


def test_mixtures_of_experts_are_refused_by_name(tmp_path):
    multilingual(tmp_path, encoder_langtok="src", decoder_langtok=True, moe_freq=4)
    with pytest.raises(ModelError, match="NLLB-MoE"):
        load_multilingual(tmp_path, "de", "en")
