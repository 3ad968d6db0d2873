"""Links between files of the repository, made to work in the site.

Pages link to files as they stand in the repository, so that the links work there. In the site

* a link to an example leads to its page in the gallery,
* a link to a source file leads to a page with its text, which is made here,
* a link to a Markdown file outside ``docs/`` leads to the page that shows its text,
* a link to a page that is not made by Sphinx, such as the explorer, stays as it is; such
  pages are copied, and their links to Markdown files lead to the built pages.
"""

import os
import re
import shutil
from pathlib import Path, PurePosixPath

LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
SHOWN = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "benchmarks/certainty/README.md": "project/certainty.md",
}
ORIGIN = {page: source for source, page in SHOWN.items() if source != "README.md"}
COPIED = ("explorer", "reproduction/report.html")  # in docs/
CODE = "code"


def target_of(link, source):
    """Return the path in the repository that a relative link in ``source`` leads to, or None."""
    if "://" in link or link.startswith(("/", "mailto:")):
        return None
    return PurePosixPath(os.path.normpath(PurePosixPath(source).parent / link)).as_posix()


def code_page(target):
    """Return the page in the site, relative to ``docs/``, that shows a source file or a folder."""
    return f"{CODE}/{target.removeprefix('src/').rstrip('/')}.rst"


def in_site(target):
    """Return where in ``docs/`` the site has a file of the repository; None if it does not."""
    if target in SHOWN:
        return SHOWN[target]
    if re.fullmatch(r"examples/plot_\w+\.py", target):
        return f"auto_examples/{PurePosixPath(target).stem}.rst"
    if target.startswith(("src/", "benchmarks/", "scripts/", "tests/")) or target == "CITATION.cff":
        return code_page(target)
    return None


def rewritten(text, source, page):
    """Return a page's text with links that work in the site.

    ``source`` is the file that was read and ``page`` the one that shows it, as paths in the
    repository.
    """

    def link(match):
        start, old, anchor, end = match.groups()
        target = target_of(old, source)
        if target is None:
            return match.group()
        new = in_site(target)
        if new is None and not target.startswith("docs/"):
            return match.group()
        new = f"docs/{new}" if new else target
        path = os.path.relpath(new, PurePosixPath(page).parent)
        scheme = "site:" if new.removeprefix("docs/").startswith(COPIED) else ""
        return f"{start}{scheme}{path}{anchor or ''}{end}"

    return LINK.sub(link, text)


def read(app, docname, source):
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md":
        page = path.relative_to(app.srcdir).as_posix()
        if origin := ORIGIN.get(page):
            file = Path(app.srcdir).parent / origin
            app.env.note_dependency(str(file), docname=docname)
            source[0] = file.read_text("utf-8")
        source[0] = rewritten(source[0], origin or f"docs/{page}", f"docs/{page}")


def linked_code(docs):
    """Return the source files and folders that the pages in ``docs`` and the shown files link to."""
    root = docs.parent
    pages = [*docs.rglob("*.md"), *(root / source for source in ORIGIN.values())]
    found = set()
    for page in pages:
        name = page.relative_to(root).as_posix()
        targets = (target_of(match[2], name) for match in LINK.finditer(page.read_text("utf-8")))
        found |= {t for t in targets if t and (in_site(t) or "").startswith(f"{CODE}/")}
    return sorted(found)


def text_of_page(root, target):
    """Return the page that shows a source file, or the files of a folder with their first lines."""
    path = root / target
    title = f"{target}\n{'=' * len(target)}\n\n"
    if path.is_dir():
        rows = []
        for file in sorted(path.glob("*.py")):
            first = file.read_text("utf-8").split('"""')[1].strip().splitlines()[0]
            rows.append(f"``{file.name}``\n   {first}\n")
        return f":orphan:\n\n{title}" + "\n".join(rows)
    language = "python" if path.suffix == ".py" else "yaml"
    depth = "../" * (code_page(target).count("/") + 1)
    return f":orphan:\n\n{title}.. literalinclude:: {depth}{target}\n   :language: {language}\n"


def write_code_pages(app):
    docs = Path(app.srcdir)
    wanted = {code_page(target): text_of_page(docs.parent, target) for target in linked_code(docs)}
    for old in (docs / CODE).rglob("*.rst"):
        if old.relative_to(docs).as_posix() not in wanted:
            old.unlink()
    for page, text in wanted.items():
        path = docs / page
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def with_built_pages(html):
    """Let links of a copied page to Markdown files lead to the pages that are built from them.

    >>> with_built_pages('<a href="../theory.md#units">')
    '<a href="../theory.html#units">'
    """
    return re.sub(r'(href="\.\./[^":]*)\.md(["#])', r"\1.html\2", html)


def copy_finished_pages(app, exception):
    for name in COPIED:
        source, goal = Path(app.srcdir) / name, Path(app.outdir) / name
        if source.is_dir():
            shutil.copytree(source, goal, dirs_exist_ok=True)
            for page in goal.rglob("*.html"):
                page.write_text(with_built_pages(page.read_text("utf-8")), "utf-8")
        elif source.exists():
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, goal)


def setup(app):
    if (Path(app.srcdir) / "explorer" / "index.html").exists():
        app.tags.add("explorer")
    app.connect("builder-inited", write_code_pages)
    app.connect("source-read", read)
    app.connect("build-finished", copy_finished_pages)
    return {"parallel_read_safe": True}
