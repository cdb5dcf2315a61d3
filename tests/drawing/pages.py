"""Read a page in tests: its elements, and its state in a browser."""

import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

VOID = {"meta", "br", "img", "input", "link", "hr"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Page(HTMLParser):
    """The elements of a page: (tag, attributes, text) in their order; each is closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        element = [tag, dict(attributes), ""]
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append([tag, dict(attributes), ""])

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        if self._open:
            self._open[-1][2] += data

    def of(self, tag, **attributes):
        """Return the elements with a tag and these attributes; None: any value."""
        return [
            element
            for element in self.elements
            if element[0] == tag
            and all(
                k in element[1] and v in (None, element[1][k])
                for k, v in ((k.replace("_", "-").strip("-"), v) for k, v in attributes.items())
            )
        ]

    @property
    def data(self):
        """The data of the script."""
        (element,) = self.of("script", id="data")
        return json.loads(element[2])


def loads_nothing(text):
    """Tell whether nothing in a page names another file or address."""
    plain = text.replace("http://www.w3.org/2000/svg", "")
    names = ("http:", "https:", "src=", "href=", "@import", "url(", "fetch(", "import(")
    return not any(name in plain for name in names)


def in_browser(path, script):
    """Return the page after a script ran in a browser; skip the test if there is none."""
    browser = next((found for found in map(shutil.which, BROWSERS) if found), None)
    if browser is None:
        pytest.skip("there is no browser")
    text = Path(path).read_text(encoding="utf-8")
    Path(path).write_text(
        text.replace("</body>", f"<script>{{{script}}}</script></body>"), encoding="utf-8"
    )
    done = subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
            f"--user-data-dir={Path(path).parent / 'browser'}", Path(path).as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return Page(done.stdout)
