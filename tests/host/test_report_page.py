# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The report's page in a real browser: what clicks and keys do, and how it looks on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.browser import Browser, browser
from tinyml.pipeline import Options
from tinyml.report import html
from tinyml.report.collect import collect
from tinyml.report.facts import Report

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
SELECTED = "Array.from(document.querySelectorAll('.selected[data-layer]'), e => e.closest('svg, table').{})"
ORDER = "Array.from(document.querySelectorAll('#layers tbody tr:not(.miss)'), r => Number(r.dataset.layer))"
ARTICLE = "Array.from(document.querySelectorAll('article'), a => a.offsetHeight ? a.id : '').join('')"

IN_CHROMIUM = pytest.mark.tenth("Chromium")


@pytest.fixture(scope="module")
def report() -> Report:
    return collect(DIGITS, Options(name="digits", kernels="portable"))


@pytest.fixture(scope="module")
def page(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Also with layers of long names, and with earlier reports."""
    long = [replace(layer, name="a/very/long/name/" * 8) for layer in report.layers]
    file = tmp_path_factory.mktemp("page") / "r.html"
    file.write_text(html.page(replace(report, layers=long), [("before", report), ("then", report)]))
    return file


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


def selected_views(chromium: Browser) -> set[str]:
    return set(chromium.run(SELECTED.format("classList[0] || 'table'")))


def conv(report: Report) -> int:
    return next(layer.step for layer in report.layers if layer.label == "conv")


@IN_CHROMIUM
@pytest.mark.parametrize("place", ["svg.graph", "svg.memory", "svg.flash", "#layers"])
def test_a_click_selects_the_layer_everywhere(
    chromium: Browser, page: Path, report: Report, place: str
) -> None:
    chromium.open(page)
    step = conv(report)
    chromium.click(f'{place} [data-layer="{step}"]')
    assert selected_views(chromium) == {"graph", "memory", "flash", "table"}
    assert chromium.run(ARTICLE) == f"layer-{step}"
    assert f"/* {step}: conv" in chromium.run("document.querySelector('article.selected pre').textContent")
    chromium.click("[data-go='1']")
    assert chromium.run(ARTICLE) == f"layer-{step + 1}"
    chromium.click("[data-go='0']")
    assert chromium.run(ARTICLE) == ""
    assert selected_views(chromium) == set()


@IN_CHROMIUM
def test_pointing_marks_the_layer_everywhere(chromium: Browser, page: Path, report: Report) -> None:
    chromium.open(page)
    chromium.point(f'#layers [data-layer="{conv(report)}"] td')
    marked = chromium.run("Array.from(document.querySelectorAll('.hot'), e => e.dataset.layer)")
    assert len(marked) >= 4
    assert set(marked) == {str(conv(report))}


@IN_CHROMIUM
def test_columns_sort(chromium: Browser, page: Path, report: Report) -> None:
    chromium.open(page)
    assert chromium.run(ORDER) == [layer.step for layer in report.layers]
    macs = "Array.from(document.querySelectorAll('#layers th')).findIndex(t => t.textContent === 'MACs') + 1"
    button = f"#layers th:nth-child({chromium.run(macs)}) button"
    by_macs = [layer.macs for layer in sorted(report.layers, key=lambda layer: -layer.macs)]
    chromium.click(button)
    assert [report.layers[step].macs for step in chromium.run(ORDER)] == by_macs
    assert chromium.run("document.querySelectorAll('[aria-sort=descending]').length") == 1
    chromium.click(button)
    assert [report.layers[step].macs for step in chromium.run(ORDER)] == by_macs[::-1]


@IN_CHROMIUM
def test_search_leaves_what_it_finds(chromium: Browser, page: Path, report: Report) -> None:
    chromium.open(page)
    chromium.key("/")
    chromium.write("conv s8")
    found = [layer.step for layer in report.layers if "conv" in layer.kernel]
    assert chromium.run(ORDER) == found
    assert chromium.run("document.querySelectorAll('svg.graph .node:not(.miss)').length") == len(found)
    assert chromium.run("document.getElementById('found').textContent").startswith(f"{len(found)} of ")


@IN_CHROMIUM
def test_the_graph_zooms_and_moves(chromium: Browser, page: Path, report: Report) -> None:
    chromium.open(page)
    box = "document.querySelector('svg.graph').getAttribute('viewBox').split(' ').map(Number)"
    before = chromium.run(box)
    chromium.click("[data-zoom=in]")
    nearer = chromium.run(box)
    assert nearer[2] == pytest.approx(before[2] / 1.25)
    chromium.drag(f'svg.graph [data-layer="{conv(report)}"]', 0, -60)
    assert chromium.run(box)[1] > nearer[1] + 20
    assert selected_views(chromium) == set(), "a drag is not a click"
    chromium.click("[data-zoom=fit]")
    assert chromium.run(box)[2] == pytest.approx(before[2])


@IN_CHROMIUM
def test_keys_go_from_layer_to_layer(chromium: Browser, page: Path) -> None:
    chromium.open(page)
    for view in ("svg.graph", "svg.flash.broad", "#layers"):
        entries = f"document.querySelectorAll('{view} [tabindex=\"0\"]').length"
        assert chromium.run(entries) == 1, "the Tab key stops once in each view"
    chromium.run("document.querySelector('svg.graph [tabindex=\"0\"]').focus()")
    chromium.key("Enter")
    assert chromium.run(ARTICLE) == "layer-0"
    chromium.key("ArrowDown")
    chromium.key("ArrowDown")
    assert chromium.run(ARTICLE) == "layer-2"
    assert chromium.run("document.activeElement.getAttribute('aria-pressed')") == "true"
    chromium.key("Escape")
    assert chromium.run(ARTICLE) == ""


@IN_CHROMIUM
def test_an_address_names_a_layer(chromium: Browser, page: Path) -> None:
    chromium.open(page)
    chromium.run("location.hash = '#layer-3'; new Promise(done => setTimeout(done, 100))")
    assert chromium.run(ARTICLE) == "layer-3"


@IN_CHROMIUM
@pytest.mark.parametrize("width", [320, 385, 1180])
def test_nothing_is_wider_than_the_screen(chromium: Browser, page: Path, width: int) -> None:
    chromium.open(page, width, 800)
    chromium.click('#layers [data-layer="2"] td')
    assert chromium.run(ARTICLE) == "layer-2"
    assert chromium.run("document.documentElement.scrollWidth") <= width


@IN_CHROMIUM
@pytest.mark.parametrize("width, shown", [(385, "narrow"), (1180, "broad")])
def test_pictures_fit_the_screen_with_all_their_words(
    chromium: Browser, page: Path, width: int, shown: str
) -> None:
    chromium.open(page, width, 800)
    visible = "Array.from(document.querySelectorAll('svg.memory, svg.flash')).filter(s => s.clientWidth)"
    assert chromium.run(f"{visible}.map(s => s.classList[1])") == [shown, shown]
    words = f"{visible}.flatMap(s => Array.from(s.querySelectorAll('text'), t => t.getBoundingClientRect()))"
    left, right = chromium.run(
        f"(w => [Math.min(...w.map(b => b.left)), Math.max(...w.map(b => b.right))])({words})"
    )
    assert left >= 0
    assert right <= width


@IN_CHROMIUM
@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(chromium: Browser, page: Path, dark: bool) -> None:
    """4.5 to 1 for ordinary text, as WCAG 2 requires for level AA."""
    chromium.open(page, dark=dark)
    ratio = """(() => {
        const light = (color) => {
            const parts = color.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
                .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
        };
        const style = getComputedStyle(document.body);
        const paper = light(style.backgroundColor);
        const probe = document.body.appendChild(document.createElement("i"));
        return ["ink", "soft", "good", "bad", "accent"].map((name) => {
            probe.style.color = `var(--${name})`;
            const ink = light(getComputedStyle(probe).color);
            return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        });
    })()"""
    assert min(chromium.run(ratio)) >= 4.5


@IN_CHROMIUM
def test_tables_and_pictures_have_names(chromium: Browser, page: Path) -> None:
    chromium.open(page)
    assert chromium.run("document.querySelectorAll('table:not(:has(caption))').length") == 0
    assert chromium.run("document.querySelectorAll('th:not([scope])').length") == 0
    assert chromium.run("document.querySelectorAll('svg:not([aria-label])').length") == 0
    assert chromium.run("document.querySelectorAll('[role=button]:not([aria-label])').length") == 0
    assert chromium.run("document.querySelectorAll('[role=region]:not([aria-label])').length") == 0
