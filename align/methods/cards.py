"""Method cards: what each method measures, what it is good for and where it fails; for the command line and `docs`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from textwrap import dedent, fill
from typing import TYPE_CHECKING

from align.methods import METHODS
from align.methods.references import BIBTEX
from data.errors import unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable

MEASURES = {
    "attention": "where the model looks; the prediction need not rest on it",
    "sensitivity": "how much the prediction would change with the word; not whether the word speaks for it",
    "saliency": "how much the word contributed to the prediction, for or against it",
    "mixed": "what its parts measure; a part that is not saliency makes the whole no saliency",
}
BOTH = "the source, or the target prefix (`run --over`)"
DEVELOPERS = "model developers"
EVERYONE = "model developers, and end users who ask why a word was translated so"


@dataclass(frozen=True)
class Card:
    """What a method's own attributes do not say. `options`: a line for each option; `references`: keys of `BIBTEX`."""

    question: str
    readers: str
    cost: str
    failure: str
    references: tuple[str, ...]
    options: dict[str, str]


LAYER = "decoder layer from 0, negative from the last"
POSITION = "awo: the step that predicts the word; awi: the step whose input it is"
SIGN = "positive keeps support only, absolute counts opposition as well, signed keeps both apart"
SEED = "with the number of the sentence it starts the random numbers, so batches and shards change nothing"
WORDS = "file of words and counts to draw from; empty: the dictionary of a fairseq model"
SAMPLES = "random copies; the cost grows with them"
NOISE = "standard deviation of the noise as a share of the range of the sentence's embeddings"

CARDS = {
    "alti": Card(
        "How much of this prediction comes from each source word, and how much from the target prefix, if the layers "
        "mix as they are seen to mix?",
        DEVELOPERS,
        "one forward pass, and memory for a vector for each pair of positions of a layer",
        "The feed-forward sublayers and the output layer are left out, and clipping at zero hides opposition. Blind to "
        "which word is predicted.",
        ("ferrando2022a", "ferrando2022b"),
        {
            "layer": LAYER,
            "position": POSITION,
            "scope": "decoder: through all layers up to this one (ALTI+); cross: this layer's cross-attention only",
        },
    ),
    "attention": Card(
        "Which source positions does this decoder layer read?",
        DEVELOPERS,
        "one forward pass",
        "Much weight goes to </s> and the final period, which often means that nothing is read. The best layer differs "
        "from model to model, and so does the position.",
        ("bahdanau2015", "kobayashi2020", "bastings2020"),
        {"layer": LAYER, "heads": "mean, or the number of one head; single heads are unstable", "position": POSITION},
    ),
    "attention-x-gradient": Card(
        "Which of the positions that this layer reads does the prediction depend on?",
        DEVELOPERS,
        "one forward and one backward pass for the last layer; a backward pass for each target piece otherwise",
        "Sees encoder positions, not words: by then they hold their neighbours too. Has no awi position, as a word "
        "cannot depend on the step it is fed into.",
        ("selvaraju2017", "chefer2021"),
        {
            "layer": LAYER,
            "rule": "positive: mean over heads of the positive part; signed: sum over heads; cam: heads weighted by "
            "their mean gradient",
        },
    ),
    "expected-gradients": Card(
        "What did each word contribute, compared with random words in its place?",
        EVERYONE,
        "two forward passes a sample, and a backward pass for each target piece and sample",
        "Sampling error falls with the square root of the samples; the completeness error shows it. Random word "
        "sequences are no language.",
        ("erion2021", "sundararajan2017"),
        {"samples": SAMPLES, "words": WORDS, "seed": SEED, "sign": SIGN},
    ),
    "flow": Card(
        "How much could at most flow from a source word to this position if attention weights were pipes?",
        DEVELOPERS,
        "one forward pass and a maximum flow for each pair of pieces: seconds for 40 pieces a side, soon minutes",
        "Scores of different words lie close together, as residual connections let much through. Blind to what is "
        "carried. Not part of `compare --methods all`; longer pairs get no links.",
        ("abnar2020",),
        {"layer": LAYER, "position": POSITION, "longest": "most pieces of a side; longer pairs are non_finite"},
    ),
    "gradient-norm": Card(
        "To which source words is the prediction sensitive?",
        DEVELOPERS,
        "one forward pass, and a backward pass for each target piece",
        "Says nothing of support or opposition, and a saturated prediction has no gradient anywhere.",
        ("li2016",),
        {"norm": "l1 (mean over dimensions) or l2"},
    ),
    "gradient-x-input": Card(
        "How much did each word contribute, to first order?",
        DEVELOPERS,
        "one forward pass, and a backward pass for each target piece",
        "Depends on where the embedding space has its origin. The function is far from linear between zero and the "
        "word, so that rows are often negative everywhere, which gives no link.",
        ("denil2014", "shrikumar2016", "ding2019"),
        {"sign": SIGN},
    ),
    "integrated-gradients": Card(
        "What did each word contribute, compared with a baseline in its place?",
        EVERYONE,
        "a forward pass for each step, and a backward pass for each step and target piece",
        "The answer depends on the baseline. Rows sum to the gain in log p only if the steps are fine enough: look at "
        "the completeness error, not at their number.",
        ("sundararajan2017",),
        {
            "baseline": "zero, unk, pad, or mean of the vocabulary",
            "steps": "points on the path",
            "rule": "gauss-legendre or midpoint",
            "sign": SIGN,
            "replaced": "what the baseline replaces: words, or all pieces with </s> and tags",
        },
    ),
    "lrp": Card(
        "How is the logit of this word made up of source words, if every layer hands its relevance down in proportion "
        "to what came in?",
        EVERYONE,
        "one forward pass, and a backward pass for each target piece; alpha-beta about five times as much",
        "Biases, positions and the target prefix take relevance too, so that a row does not sum to the logit "
        "(`align.methods.propagation.budget` tells where it went). The word embedding's share against its position "
        "depends on their scale. Caution: the README of the AttnLRP authors' toolkit calls LRP patented, and free for "
        "personal and scientific use only; clear this before other use.",
        ("achtibat2024", "arras2025", "ali2022", "voita2021"),
        {
            "linear": "epsilon, or alpha-beta, which separates positive from negative contributions",
            "epsilon": "stabiliser of the epsilon rule; it swallows relevance, 0 swallows none",
            "alpha": "share that goes by positive contributions in alpha-beta",
            "attention": "propagated through the weights to queries and keys (AttnLRP), or weights held (CP-LRP)",
            "sign": SIGN,
        },
    ),
    "mean": Card(
        "Which source words do several methods, layers or heads find together?",
        DEVELOPERS,
        "that of its parts; parts that read the same evidence share it",
        "Parts that err alike outvote the others. Shares of unlike things, such as attention and saliency, have no "
        "meaning of their own when added: good for links, not as an explanation.",
        ("garg2019",),
        {
            "methods": "written in brackets with weights before them: mean(lrp,2*vector-norm:layer=0|1:position=awi); "
            "values with | between stand for one part each and share the weight",
            "weights": "1 where not given",
        },
    ),
    "occlusion": Card(
        "How much worse would the model predict this word if a source word were blanked out?",
        EVERYONE,
        "one forward pass for each source word, and one more",
        "Inputs with a hole are unlike the training data, so that a loss may show damage. Of two words that say the "
        "same, neither is missed.",
        ("zeiler2014", "li2016erasure", "li2019"),
        {
            "sign": SIGN,
            "objective": "log-prob or prob: what the loss is counted in",
            "baseline": "zero, unk, pad, or mean of the vocabulary",
            "unit": "word takes all pieces of a word at once; piece takes one at a time",
        },
    ),
    "omission": Card(
        "How much worse would the model predict this word if a source word were not there?",
        EVERYONE,
        "one forward pass for each source word, and one more",
        "Later words move up, so that positions change as well. Of two words that say the same, neither is missed.",
        ("kadar2017", "li2016erasure"),
        {
            "sign": SIGN,
            "objective": "log-prob or prob: what the loss is counted in",
            "unit": "word takes all pieces of a word at once; piece takes one at a time",
        },
    ),
    "relevancy": Card(
        "Which source words does the prediction depend on through the attention of all layers?",
        DEVELOPERS,
        "one forward pass and a backward pass for each target piece, with maps of all layers for each",
        "Only attention is followed; the negative part of every product is dropped on the way.",
        ("chefer2021",),
        {},
    ),
    "resampling": Card(
        "How much worse would the model predict this word if another word stood in the source word's place?",
        EVERYONE,
        "a forward pass for each source word and draw, and one more",
        "Few draws leave noise. A drawn word may fit by chance, or change what its neighbours mean.",
        ("zintgraf2017",),
        {
            "sign": SIGN,
            "objective": "log-prob or prob: what the loss is counted in",
            "draws": "random words for each word; the cost grows with them",
            "words": WORDS,
            "seed": SEED,
        },
    ),
    "rollout": Card(
        "From which source words does this position come if attention alone mixes them?",
        DEVELOPERS,
        "one forward pass",
        "Takes half of every position as its own past whatever the model does, and blurs with depth. Blind to what is "
        "carried and to which word is predicted.",
        ("abnar2020",),
        {
            "layer": LAYER,
            "position": POSITION,
            "scope": "decoder: through all layers up to this one; cross: this layer's cross-attention only",
        },
    ),
    "smoothgrad": Card(
        "How much did each word contribute, averaged over small disturbances of the input?",
        EVERYONE,
        "a forward pass for each sample, and a backward pass for each sample and target piece",
        "The noise decides what is averaged: too much of it explains another input. Clamping each sample hides "
        "opposition. With base=l1 or l2 it measures sensitivity, not saliency.",
        ("smilkov2017", "ding2019"),
        {
            "samples": SAMPLES,
            "noise": NOISE,
            "base": "input (gradient x input), l1, l2 (gradient norms), or integrated (Integrated Gradients)",
            "seed": SEED,
            "steps": "points on each path of base=integrated",
        },
    ),
    "vargrad": Card(
        "For which words does the contribution hang on small disturbances of the input?",
        DEVELOPERS,
        "a forward pass for each sample, and a backward pass for each sample and target piece",
        "A steady contribution has no variance, however large it is. Says nothing of support or opposition.",
        ("adebayo2018",),
        {
            "samples": SAMPLES,
            "noise": NOISE,
            "base": "input (gradient x input), l1 or l2 (gradient norms)",
            "seed": SEED,
        },
    ),
    "vector-norm": Card(
        "How large is what this decoder layer takes from each source position?",
        DEVELOPERS,
        "one forward pass",
        "Large vectors may cancel, and what they do afterwards is not looked at. The best layer and position differ "
        "from model to model.",
        ("kobayashi2020",),
        {"layer": LAYER, "position": POSITION},
    ),
}


def overview() -> str:
    """All methods, one a line: name, what it measures, summary."""
    rows = [(name, method.measures, method.summary) for name, method in sorted(METHODS.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"{name:{widths[0]}}  {measures:{widths[1]}}  {summary}" for name, measures, summary in rows]
    return "\n".join(lines) + "\n"


def card_text(name: str) -> str:
    """The card of a method for a terminal. Raises UsageError for an unknown name."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    parts = [f"{name}: {METHODS[name].summary}"]
    parts += [_paragraph(f"{label}: {text}") for label, text in card_facts(name)]
    options = [_paragraph(f"  {option}: {text}", "      ") for option, text in _options(name)]
    parts.append("\n".join(["Options:", *options]))
    parts += [BIBTEX[key] for key in CARDS[name].references]
    return "\n\n".join(parts) + "\n"


def markdown() -> str:
    """All cards as the page `docs/methods.md`."""
    measures = "\n".join(f"* **{kind}**: {text}" for kind, text in MEASURES.items())
    parts = [INTRODUCTION.format(measures=measures)]
    for name in sorted(METHODS):
        facts = [f"* **{label}**: {text}" for label, text in card_facts(name)]
        options = [f"  * `{option}`: {text}" for option, text in _options(name)]
        sources = ", ".join(f"[{key}](#{key})" for key in CARDS[name].references)
        heading = [f"## {name}", "", f"{METHODS[name].summary[0].upper()}{METHODS[name].summary[1:]}.", ""]
        parts.append("\n".join([*heading, *facts, "* **Options**", *options, f"* **Papers**: {sources}"]))
    parts.append("## References")
    parts += [f'<a id="{key}"></a>\n\n```bibtex\n{BIBTEX[key]}\n```' for key in _cited(METHODS)]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = dedent("""\
    # Methods

    Every method scores source pieces for each target piece of a sentence pair. What the scores mean differs:

    {measures}

    Attention and sensitivity do not answer whether a prediction rests on a word; saliency does
    ([bastings2020](#bastings2020)). Cost is for all target pieces of one pair. Options are given after the name, as in
    `nmt-align run --method smoothgrad:samples=10:noise=0.1`; `nmt-align methods NAME` prints a card, and this page is
    `nmt-align methods --markdown`.""")


def card_facts(name: str) -> list[tuple[str, str]]:
    """What there is to know about a method apart from its options: labels and texts."""
    method, card = METHODS[name], CARDS[name]
    return [
        ("Measures", f"{method.measures}, that is {MEASURES[method.measures]}"),
        ("Question", card.question),
        ("For", card.readers),
        ("Cost", card.cost),
        ("Known failure", card.failure),
        ("Explains from", f"the source alone: {method.source_only}" if method.source_only else BOTH),
        ("Source", method.citation),
    ]


def _options(name: str) -> list[tuple[str, str]]:
    """Options with their defaults, and what they do."""
    described = CARDS[name].options
    found = [(f"{field.name}={field.default}", described[field.name]) for field in fields(METHODS[name])]
    return found or [("none", "there is nothing to choose")]


def _cited(names: Iterable[str]) -> list[str]:
    return sorted({"bastings2020"}.union(*(CARDS[name].references for name in names)))


def _paragraph(text: str, indent: str = "  ") -> str:
    return fill(text, width=100, subsequent_indent=indent)
