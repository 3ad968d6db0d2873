"""Check a built site: links inside it lead to pages and anchors, nothing is loaded from elsewhere.

``python scripts/check_site.py docs/_build/html`` lists what is wrong and ends with the exit code 1, or
says how many links were checked.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {  # tags that load what an attribute names
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "input": ("src",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
}
NOT_LOADED = {"canonical", "author", "license", "next", "prev", "index", "search", "alternate"}
IMPORTED = re.compile(r"""(?:@import\s+(?:url\()?|url\()\s*["']?((?:https?:)?//[^"')\s]+)""")


class Page(HTMLParser):
    """The anchors, the links and the loaded files of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = {"", "top"}, [], []
        self.in_style = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.in_style = tag == "style"
        if tag in ("a", "area") and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and not NOT_LOADED & set(values.get("rel", "").lower().split()):
            self.loaded.append(values.get("href", ""))
        for name in LOADED.get(tag, ()):
            if value := values.get(name):
                parts = value.split(",") if name == "srcset" else [value]
                self.loaded += [part.split()[0] for part in parts if part.strip()]
        self.loaded += IMPORTED.findall(values.get("style", ""))

    def handle_endtag(self, tag):
        self.in_style = False

    def handle_data(self, data):
        if self.in_style:
            self.loaded += IMPORTED.findall(data)


def is_elsewhere(link):
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def target(site, path, link):
    """Return the file that a link inside the site leads to, and its anchor."""
    parts = urlsplit(link)
    where = unquote(parts.path)
    if not where:
        return path, unquote(parts.fragment)
    goal = (site / where.lstrip("/")) if where.startswith("/") else (path.parent / where)
    goal = goal.resolve()
    return (goal / "index.html" if goal.is_dir() else goal), unquote(parts.fragment)


def faults_of_page(site, path, pages):
    """Yield what is wrong with the links and the loaded files of one page."""
    for link in pages[path].links:
        if is_elsewhere(link):
            continue
        goal, anchor = target(site, path, link)
        if not goal.exists():
            yield f"broken link: {link}"
        elif goal in pages and anchor not in pages[goal].anchors:
            yield f"no such anchor: {link}"
    for link in pages[path].loaded:
        if link.startswith("data:"):
            continue
        if is_elsewhere(link):
            yield f"loaded from elsewhere: {link}"
        elif not target(site, path, link)[0].exists():
            yield f"missing file: {link}"


def faults(site):
    """Return a list of what is wrong with a site, and the number of links that were checked."""
    site = Path(site).resolve()
    found = [p for p in sorted(site.rglob("*.html")) if "_static" not in p.relative_to(site).parts]
    pages = {path: Page(path.read_text("utf-8")) for path in found}
    wrong = [
        f"{path.relative_to(site)}: {fault}"
        for path in pages
        for fault in faults_of_page(site, path, pages)
    ]
    for path in sorted(site.rglob("*.css")):
        for link in IMPORTED.findall(path.read_text("utf-8")):
            wrong.append(f"{path.relative_to(site)}: loaded from elsewhere: {link}")
    if not pages:
        wrong.append(f"there are no pages in {site}")
    return wrong, sum(len(page.links) + len(page.loaded) for page in pages.values())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} SITE")
    wrong, n_links = faults(sys.argv[1])
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{n_links} links checked, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)
