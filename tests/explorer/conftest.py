"""A headless Chromium for the tests of docs/explorer, opened from the file system as a reader would."""

import os
import shutil
from pathlib import Path

import pytest

EXPLORER = Path(__file__).parents[2] / "docs" / "explorer" / "index.html"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 120_000  # milliseconds that a run of the page may take on a busy machine


def chromium():
    """Return the path of an installed Chromium: $CHROMIUM, or the first one on PATH."""
    given = os.environ.get("CHROMIUM")
    found = shutil.which(given) if given else next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.exit(
            f"no Chromium was found ({f'CHROMIUM={given}' if given else ', '.join(NAMES)}); "
            "the explorer's tests need one. Install chromium, or set CHROMIUM=/path/to/it",
            returncode=3,
        )
    return found


@pytest.fixture(scope="session")
def browser():
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Open the explorer; at the end, check that nothing went wrong in its console or on the network."""
    contexts, complaints = [], []

    def open_page(problem=None, **options):
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("request", lambda request: complaints.extend(foreign(request.url)))
        page.goto(EXPLORER.as_uri() + ("" if problem is None else fragment(problem)))
        page.wait_for_function("L0.page.theory !== null")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(open_page):
    """The explorer on a wide screen, at the hard problem that it opens with."""
    return open_page(viewport={"width": 1280, "height": 900})


def foreign(url):
    """List the URL if it is not a file of the explorer."""
    return [] if url.startswith((EXPLORER.parent.as_uri(), "data:")) else [f"request: {url}"]


def fragment(problem):
    """Return the part of the URL that sets (α, ρ, ρ̂, σ²)."""
    names = ("alpha", "rho", "rhoHat", "noise")
    return "#" + "&".join(f"{name}={value!r}" for name, value in zip(names, problem, strict=True))
