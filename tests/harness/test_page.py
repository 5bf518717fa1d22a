"""The report as a page, in a real browser: it sorts, has two colour schemes, shows each number's runs, has no error."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser

import pytest

from seqstruct.harness.page import Sheet, Shown, page

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync")
DETAILS = 'seed 1: 9.5, commit ab12cd3: python x.py --row "a <b>" --seed 1'
SHEET = Sheet(
    "figure-2", "a_paper, figure-2: <Difference> & more", ["Ours, scale small: Dyck-2"], ["row", "test (%)", "speed"],
    [
        [Shown("Tf 10"), Shown("9.5 (1) [<8]", 9.5, DETAILS), Shown("")],
        [Shown("Tf 9"), Shown("10.5 (1)", 10.5, "seed 1: 10.5"), Shown("3 (1)", 3.0, "seed 1: 3")],
        [Shown("Tf 11"), Shown("-1.5 (1)", -1.5, "seed 1: -1.5"), Shown("1e+03 (1)", 1000.0, "seed 1: 1000")],
    ],
    ["Not yet run: Tf+Nd."],
)
EMPTY = Sheet("5", "a_paper, 5: Parameters", [], ["row"], [], ["Not yet run: Tf."])


def test_the_page_needs_nothing_else_and_is_whole():
    text = page("a_paper", [SHEET, EMPTY])
    assert not re.search(r"https?:|src=|@import|url\(", text)
    opened: list[str] = []

    class Balanced(HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag not in ("meta", "link"):
                opened.append(tag)

        def handle_endtag(self, tag):
            assert opened.pop() == tag

    Balanced().feed(text)
    assert opened == [] and "&lt;Difference&gt; &amp; more" in text and text.count("<table") == 1


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not BROWSER or not DRIVER:
        pytest.skip("no chromium with its driver here; Debian has them as chromium and chromium-driver")
    from selenium import webdriver

    folder = tmp_path_factory.mktemp("page")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in (*OPTIONS, f"--user-data-dir={folder / 'profile'}", "--window-size=1200,800"):
        options.add_argument(option)
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    (folder / "page.html").write_text(page("a_paper", [SHEET, EMPTY]), "utf-8")
    driver.get((folder / "page.html").as_uri())
    yield driver
    assert driver.get_log("browser") == []
    driver.quit()


def column(browser, at):
    return [cells[at].text for cells in (row.find_elements("css selector", "th, td")
                                         for row in browser.find_elements("css selector", "tbody tr"))]


def test_a_click_on_a_heading_sorts_by_numbers_and_back(browser):
    row, test, speed = browser.find_elements("css selector", "thead button")
    test.click()
    assert column(browser, 1) == ["-1.5 (1)", "9.5 (1) [<8]", "10.5 (1)"]
    heading = browser.find_element("css selector", "th[aria-sort]")
    assert heading.text.startswith("test (%)") and heading.get_attribute("aria-sort") == "ascending"
    test.click()
    assert column(browser, 1) == ["10.5 (1)", "9.5 (1) [<8]", "-1.5 (1)"]
    for expected in (["Tf 9", "Tf 11", "Tf 10"], ["Tf 11", "Tf 9", "Tf 10"]):
        speed.click()
        assert column(browser, 0) == expected, "what has no number stays last"
    row.click()
    assert column(browser, 0) == ["Tf 9", "Tf 10", "Tf 11"]
    assert len(browser.find_elements("css selector", "th[aria-sort]")) == 1


def test_numbers_show_their_runs_to_the_mouse_and_to_the_keyboard(browser):
    from selenium.webdriver import ActionChains, Keys

    details = browser.find_element("id", "details")
    assert not details.is_displayed()
    cell = browser.find_element("css selector", 'td[data-value="9.5"]')
    ActionChains(browser).move_to_element(cell).perform()
    assert details.is_displayed() and details.text == DETAILS
    assert cell.get_attribute("aria-describedby") == "details"
    ActionChains(browser).move_to_element(browser.find_element("tag name", "h1")).perform()
    assert not details.is_displayed() and cell.get_attribute("aria-describedby") is None
    browser.execute_script("arguments[0].focus()", cell)
    assert details.text == DETAILS
    cell.send_keys(Keys.ESCAPE)
    assert not details.is_displayed()


def test_the_colours_are_those_that_the_reader_prefers_and_can_be_read(browser):
    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    found = {}
    for scheme in ("light", "dark"):
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        body = browser.find_element("tag name", "body")
        found[scheme] = [luminance(body.value_of_css_property(name)) for name in ("background-color", "color")]
        for element in browser.find_elements("css selector", "th, td, a, p"):
            ink = luminance(element.value_of_css_property("color"))
            high, low = sorted((ink, found[scheme][0]), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (scheme, element.text)
    assert found["light"][0] > 0.9 and found["dark"][0] < 0.1
