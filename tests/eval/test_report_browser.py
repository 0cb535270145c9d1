"""The page of a report in headless Chromium: what is clicked, typed and pointed at does what it should."""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from data.bitext import Pair
from data.links import GoldAlignment, Links
from eval.aer import scores, sentence_stats
from eval.report.build import BASE, LexiconEntry, Report, System
from eval.report.render import write_report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    pytest.skip("chromium and chromedriver are not installed", allow_module_level=True)

ALERT = "<script>alert(1)</script>"
RANDOM = np.random.default_rng(3)


def random_links(pair: Pair, share: float) -> Links:
    chosen = RANDOM.random((len(pair.source), len(pair.target))) < share
    return frozenset((int(i), int(j)) for i, j in zip(*chosen.nonzero(), strict=True))


def random_pairs() -> list[Pair]:
    lengths = [(2, 3), (9, 8), (70, 4), (5, 66), (0, 3), (4, 0), (12, 12), (8, 9)]
    pairs = [
        Pair(k, tuple(f"s{i}" for i in range(i)), tuple(f"t{j}" for j in range(j))) for k, (i, j) in enumerate(lengths)
    ]
    return [*pairs, Pair(len(pairs), (ALERT, "needle"), ("والتقى", "日本"))]


PAIRS = random_pairs()
SURE = [random_links(pair, 0.1) for pair in PAIRS]
GOLD = [GoldAlignment(sure, random_links(pair, 0.1)) for sure, pair in zip(SURE, PAIRS, strict=True)]
SOFT = [RANDOM.dirichlet(np.ones(max(1, len(p.source))), len(p.target))[:, : len(p.source)] for p in PAIRS]


def random_interactions(pair: Pair) -> NDArray[np.float64]:
    """Symmetric amounts of both signs with an empty diagonal, [J, I, I]."""
    size = len(pair.source)
    below = np.tril(RANDOM.normal(size=(len(pair.target), size, size)), -1)
    return below + below.transpose(0, 2, 1)


TOGETHER = {k: random_interactions(PAIRS[k]) for k in (0, 1, 7, 8)}


def row(aer: float, layer: int | None = None, position: str | None = None) -> dict[str, object]:
    place = {"layer": layer, "position": position, "heads": None, "direction": "forward", "pooling": "word"}
    return {**place, "aer": aer, "aer_low": aer - 0.1, "aer_high": aer + 0.1, "signature": f"made with {aer}"}


def report(with_gold: bool) -> Report:
    def links() -> list[Links]:
        return [random_links(pair, 0.12) | frozenset(list(sure)[::2]) for pair, sure in zip(PAIRS, SURE, strict=True)]

    systems = [
        System("attention", "layer 1", links(), row(0.2, 1, "awo"), lambda k: SOFT[k], "a share"),
        System("attention", "layer 0", links(), row(0.4, 0, "awo")),
        System("attention", "layer 0 AWI", links(), row(0.3, 0, "awi")),
        System("norm", "", links(), row(0.7)),
    ]
    cards = {"attention": [("Measures", "where it looks")], "norm": [("Measures", "what it reacts to")]}
    gold, together = (GOLD, TOGETHER) if with_gold else (None, {})
    return Report("Test", ["a fact"], PAIRS, systems, gold, cards, interactions=together)


REPORT, PLAIN = report(True), report(False)


class Browser:
    """A page and the ways of a person with it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((element) => element.textContent)"
        return list(self.driver.execute_script(script, selector))

    def show(self, at: int) -> None:
        """Click a pair in the list, again if the page moved under the pointer."""

        def shown(driver: Any) -> bool:
            self.one(f"#pair-{at}").click()
            return bool(self.one("#pair-title").text == f"Pair {at + 1}")

        WebDriverWait(self.driver, 10).until(shown)

    def press(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def choose(self, select: str, value: str) -> None:
        self.one(f"{select} option[value='{value}']").click()

    def kinds(self) -> dict[tuple[int, int], str]:
        """The drawn links of the pair."""
        script = "return [...document.querySelectorAll('#links g')].map((g) => ({...g.dataset}))"
        groups = self.driver.execute_script(script)
        return {(int(g["source"]), int(g["target"])): g["kind"] for g in groups}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1300,1000",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {"gold": folder / "gold.html", "plain": folder / "plain.html"}
    assert write_report(REPORT, found["gold"]) == []
    assert write_report(PLAIN, found["plain"]) == []
    return found


def opened(chromium: Any, path: Path) -> Iterator[Browser]:
    """A page anew, which at the end must have fetched nothing, complained of nothing and opened no dialog."""
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    chromium.get(path.as_uri())
    yield Browser(chromium)
    events = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    requests = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]
    assert not any(e["method"] == "Page.javascriptDialogOpening" for e in events)
    assert chromium.get_log("browser") == []


@pytest.fixture
def browser(chromium: Any, pages: dict[str, Path]) -> Iterator[Browser]:
    yield from opened(chromium, pages["gold"])


@pytest.fixture
def plain(chromium: Any, pages: dict[str, Path]) -> Iterator[Browser]:
    yield from opened(chromium, pages["plain"])


def expected_kinds(system: System, at: int) -> dict[tuple[int, int], str]:
    """What each link is, by the definitions."""
    gold, links = GOLD[at], system.links[at]
    kinds = {}
    for i in range(len(PAIRS[at].source)):
        for j in range(len(PAIRS[at].target)):
            made, sure, possible = ((i, j) in s for s in (links, gold.sure, gold.possible))
            if made:
                kinds[i, j] = "sure" if sure else "possible" if possible else "false"
            elif possible:
                kinds[i, j] = "miss" if sure else "open"
    return kinds


def test_every_pair_is_drawn_as_it_is(browser: Browser) -> None:
    for at in range(len(PAIRS)):
        browser.show(at)
        assert browser.kinds() == expected_kinds(REPORT.systems[0], at)
        assert browser.texts("#links ol:first-child bdi") == list(PAIRS[at].source)
        assert browser.texts("#links ol:last-child bdi") == list(PAIRS[at].target)
        assert len(browser.all("#heat .mark")) == len(browser.all("#links .mark"))


def test_scores_of_pairs_are_those_of_aer(browser: Browser) -> None:
    for number, system in enumerate(REPORT.systems):
        browser.choose("#system", str(number))
        stats = [sentence_stats(links, gold) for links, gold in zip(system.links, GOLD, strict=True)]
        aers = [scores(s).aer for s in stats]
        assert browser.texts("#list .score") == ["–" if aer is None else f"{100 * aer:.1f}" for aer in aers]


def test_clicking_a_system_changes_the_picture(browser: Browser) -> None:
    at = 1  # the first pair of some length, which is shown first
    assert browser.one("#pair-title").text == "Pair 2"
    before = browser.kinds()
    assert before == expected_kinds(REPORT.systems[0], at)
    browser.all("#systems button.name")[3].click()
    assert browser.kinds() == expected_kinds(REPORT.systems[3], at) != before
    assert browser.one("#chosen").text == "norm, forward, word"
    assert browser.one("#signature").text == "made with 0.7"
    assert [card.text for card in browser.all(".card") if card.is_displayed()] == ["Measures\nwhat it reacts to"]
    assert browser.one("#system").get_attribute("value") == "3"


def test_markup_in_words_stays_text(browser: Browser) -> None:
    browser.show(len(PAIRS) - 1)
    assert browser.one("#links bdi").text == ALERT
    assert browser.texts("#heat text.source")[0] == f"{ALERT[:13]}…"
    assert ALERT in browser.texts("#list bdi")[-1]
    assert len(browser.all("script")) == 2


def test_heat_map_holds_the_shares(browser: Browser) -> None:
    browser.show(6)
    levels = np.rint(SOFT[6] * 63).astype(int)
    shades = browser.all("#heat .shade")
    assert len(shades) == len(set(levels.flat) - {0})
    assert sum(shade.get_attribute("d").count("M") for shade in shades) == np.count_nonzero(levels)
    browser.choose("#system", "1")
    assert browser.all("#heat .shade") == []
    assert not browser.one("#soft").is_displayed()


def test_a_word_tells_what_it_is_linked_to(browser: Browser) -> None:
    browser.show(6)
    browser.all("#links ol:last-child li")[2].click()
    told = browser.texts("#readout bdi")
    assert told[0] == "t2"
    expected = {
        i: float(SOFT[6][2, i])
        for i in range(12)
        if SOFT[6][2, i] >= 0.06 or (i, 2) in expected_kinds(REPORT.systems[0], 6)
    }
    assert {f"s{i}" for i in expected} <= set(told[1:])
    best = max(expected, key=lambda i: expected[i])
    assert browser.texts("#readout span")[0].startswith(f"s{best} {expected[best]:.2f}"[:-1])
    linked = {i for (i, j), kind in expected_kinds(REPORT.systems[0], 6).items() if j == 2 and kind != "open"}
    lit = {int(text) for text in browser.texts("#links ol:first-child .lit .position")}
    assert lit == linked
    assert browser.one("#heat .frame").get_attribute("visibility") == "visible"


def test_words_that_act_together(browser: Browser) -> None:
    browser.show(7)
    found = TOGETHER[7]
    most = abs(found).max()
    assert browser.one("#together-word").text == f"t{int(abs(found).max((1, 2)).argmax())}"
    assert browser.one("#together-most").text == f"{most:.2f}"
    browser.all("#links ol:last-child li")[2].click()
    assert browser.one("#together-word").text == "t2"
    half = BASE // 2 - 1
    levels = {(k, i): round(found[2, i, k] / most * half) for i in range(8) for k in range(i)}
    titles = browser.texts("#together g title")
    assert titles == [
        f"s{k} + s{i}: {'−' if level < 0 else '+'}{abs(level / half * most):.2f}" for (k, i), level in levels.items()
    ]
    for kind, sign in (("needed", 1), ("instead", -1)):
        assert len(browser.all(f"#together g .{kind}")) == sum(sign * level > 0 for level in levels.values())
        sides = [float(s.get_attribute("width")) for s in browser.all(f"#together g .{kind}")]
        areas = [abs(level) / half * 18**2 for level in levels.values() if sign * level > 0]
        assert [side**2 for side in sides] == pytest.approx(areas)
    strongest = sorted(levels, key=lambda cell: -abs(levels[cell]))[:3]
    told = [item.split(" ") for item in browser.texts("#together-told li")]
    assert [words[:3] for words in told] == [[f"s{k}", "+", f"s{i}"] for k, i in strongest]
    browser.all("#links ol:first-child li")[1].click()
    assert browser.one("#together-word").text == "t2"
    browser.show(8)
    assert browser.texts("#together text") == [f"{ALERT[:13]}…", "needle"]
    browser.show(6)
    assert not browser.one("#together").is_displayed()


def test_order_search_and_filter(browser: Browser) -> None:
    def lines() -> list[int]:
        return [int(text) - 1 for text in browser.texts("#list .position")]

    def errors(at: int) -> int:
        return sum(kind in ("false", "miss") for kind in expected_kinds(REPORT.systems[0], at).values())

    browser.choose("#order", "errors")
    assert lines() == sorted(range(len(PAIRS)), key=lambda at: -errors(at))
    assert browser.one("#list [aria-selected]").get_attribute("data-at") == str(lines()[0])
    browser.choose("#order", "file")
    browser.one("#erring").click()
    assert lines() == [at for at in range(len(PAIRS)) if errors(at)]
    browser.one("#erring").click()
    browser.press(Keys.ESCAPE)
    browser.one("body").send_keys("/")
    browser.press("NEEDLE")
    assert lines() == [len(PAIRS) - 1]
    assert browser.texts(".found") == ["needle"]
    assert browser.one("#count").text == f"1 of {len(PAIRS)} pairs"
    browser.press("?")
    assert lines() == []
    assert not browser.one("#pair").is_displayed()


def test_keys(browser: Browser) -> None:
    body = browser.one("body")
    body.send_keys(Keys.ARROW_RIGHT)
    assert browser.one("#pair-title").text == "Pair 3"
    body.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert browser.one("#pair-title").text == "Pair 1"
    body.send_keys("]")
    assert browser.kinds() == expected_kinds(REPORT.systems[1], 0)
    body.send_keys("[")
    assert browser.kinds() == expected_kinds(REPORT.systems[0], 0)
    browser.one("#list").send_keys(Keys.END)
    assert browser.one("#pair-title").text == f"Pair {len(PAIRS)}"
    browser.all("#links li")[0].click()
    browser.press(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert browser.one("#readout .word").text == "日本"


def test_the_table_sorts_both_ways(browser: Browser) -> None:
    names = [f"{s.name} {s.details}".strip() for s in REPORT.systems]

    def shown() -> list[str]:
        return [" ".join(text.split()) for text in browser.texts("#systems tbody th")]

    assert shown() == names
    head = browser.all("#systems thead button")
    head[2].click()  # AER, which has them in order already
    assert shown() == [names[k] for k in (0, 2, 1, 3)]
    head[2].click()
    assert shown() == [names[k] for k in (3, 1, 2, 0)]
    assert browser.one("#systems [aria-sort]").text.startswith("AER")


def test_layers_are_drawn_and_clickable(browser: Browser) -> None:
    assert browser.texts("#layers .curve > text") == ["AWO", "AWI"]
    assert len(browser.all("#layers .point")) == 3
    browser.all("#layers .point circle")[0].click()
    assert browser.one("#system").get_attribute("value") == "1"


def test_without_gold_links_are_links(plain: Browser) -> None:
    assert set(plain.kinds()) == set(PLAIN.systems[0].links[1])
    assert set(plain.kinds().values()) == {"link"}
    assert plain.texts("#legend li") == ["link"]
    assert plain.all("#erring") == plain.all("#together") == []


def test_a_report_without_pairs(chromium: Any, tmp_path: Path) -> None:
    page = tmp_path / "empty.html"
    write_report(Report("Empty", [], [], [System("x", "", [], {"links": 0})]), page)
    for browser in opened(chromium, page):
        assert browser.one("#count").text == "0 of 0 pairs"
        browser.one("body").send_keys(Keys.ARROW_RIGHT)
        browser.driver.set_window_size(900, 900)
        assert not browser.one("#pair").is_displayed()
    chromium.set_window_size(1300, 1000)


@pytest.mark.parametrize("width", [360, 1300])
def test_the_page_is_never_wider_than_the_screen(browser: Browser, width: int) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for at in range(len(PAIRS)):
            browser.show(at)
            assert browser.driver.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def counted_lexicon(system: System) -> dict[str, Counter[str]]:
    """The links of each source word, as the lexicon command counts them."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pair, links in zip(PAIRS, system.links, strict=True):
        for i, word in enumerate(pair.source):
            found[word].update([pair.target[j] for k, j in links if k == i] or ["(no link)"])
    return found


def test_the_lexicon_counts_what_the_system_links(browser: Browser) -> None:
    for number in (0, 3):
        browser.choose("#system", str(number))
        expected = counted_lexicon(REPORT.systems[number])
        assert browser.one("#word-count").text == f"{len(expected)} of {len(expected)} words"
        assert dict(zip(browser.texts("#words bdi"), browser.texts("#words .score"), strict=True)) == {
            word: str(counts.total()) for word, counts in expected.items()
        }
        browser.one("#lookup").send_keys("S1")
        assert browser.one("#entry-title").text == "s1"
        rows = [row.find_elements("css selector", "th, td") for row in browser.all("#translations tbody tr")]
        told = {cells[0].text: (cells[1].text, int(cells[2].text)) for cells in rows}
        total = expected["s1"].total()
        assert told == {word: (f"{100 * n / total:.1f}", n) for word, n in expected["s1"].items()}
        bars = [float(bar.get_attribute("width")) for bar in browser.all("#translations rect")]
        assert bars == pytest.approx([100 * n / total for _, n in expected["s1"].most_common()])
        browser.one("#lookup").send_keys(Keys.BACKSPACE * 2)


def test_a_translation_leads_to_its_sentences(browser: Browser) -> None:
    browser.one("body").send_keys("l")
    browser.press("s1")
    browser.press(Keys.ESCAPE)
    button = browser.all("#translations tbody button")[0]
    partner = button.text
    button.click()

    def partners(at: int) -> list[str]:
        return [PAIRS[at].target[j] for i, j in REPORT.systems[0].links[at] if i == 1] or ["(no link)"]

    where = [at for at, pair in enumerate(PAIRS) if pair.source[1:2] == ("s1",) and partner in partners(at)]
    assert [int(text) - 1 for text in browser.texts("#list .position")] == where
    assert browser.one("#readout .word").text == "s1"
    browser.one("#drop").click()
    assert len(browser.texts("#list .position")) == len(PAIRS)
    assert not browser.one("#drop").is_displayed()


def test_the_lexicon_of_the_target_and_of_the_gold(browser: Browser) -> None:
    browser.choose("#side", "target")
    browser.one("#lookup").send_keys("日本")
    assert browser.texts("#words bdi") == ["日本"]
    gold = GOLD[-1]
    kinds = {True: "a sure pair", False: "no pair"}
    for row in browser.all("#translations tbody tr"):
        word = row.find_element("css selector", "bdi").text
        if word != "(no link)":
            link = (PAIRS[-1].source.index(word), 1)
            expected = kinds[link in gold.sure] if link not in gold.possible - gold.sure else "a possible pair"
            title = row.find_element("css selector", "title").get_attribute("textContent")
            assert title.startswith(expected)


def test_a_lexicon_of_more_text_than_the_page(chromium: Any, tmp_path: Path) -> None:
    entries = [
        LexiconEntry(ALERT, "x", 1500, 2000, 3000, [0]),
        LexiconEntry(ALERT, "", 500, 2000, 700, []),
        LexiconEntry("", "x", 1500, 1500, 3000, []),
    ]
    pairs = [Pair(41, (ALERT, "b"), ("x",))]
    page = tmp_path / "lexicon.html"
    write_report(Report("L", [], pairs, [System("l", "", [frozenset({(0, 0)})], {"links": 1})], lexicon=entries), page)
    for browser in opened(chromium, page):
        assert browser.texts("#words li") == [f"{ALERT}2,000"]
        assert [row.text.split() for row in browser.all("#translations tbody tr")] == [
            ["x", "75.0", "1,500", "50.0"],
            ["(no", "link)", "25.0", "500", "–"],
        ]
        assert not browser.one("#systems").is_displayed()
        (button,) = browser.all("#translations tbody button")
        button.click()
        assert browser.one("#pair-title").text == "Pair 42"
        assert browser.one("#readout .word").text == ALERT
