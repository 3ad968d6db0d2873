"""Sphinx configuration of the site; ``make docs`` builds it."""

import shutil
import sys
from importlib.metadata import version as version_of
from pathlib import Path

import matplotlib

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))
matplotlib.use("agg")

# Examples write their pictures to the working directory. A copy keeps the checkout clean.
EXAMPLES = DOCS / "_build" / "examples"
shutil.rmtree(EXAMPLES, ignore_errors=True)
shutil.copytree(
    DOCS.parent / "examples",
    EXAMPLES,
    ignore=lambda folder, names: [n for n in names if not n.endswith((".py", ".rst"))],
)

project = "l0anneal"
author = "The l0anneal developers"
copyright = "the l0anneal developers"
version = release = version_of("l0anneal")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "own_members",
    "short_names",
    "used_in",
    "repository_links",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
templates_path = ["_templates"]
exclude_patterns = ["_build", "explorer", "reproduction/data", "reference/backreferences"]
default_role = "py:obj"

autosummary_filename_map = {  # names that differ from another in their case alone
    "l0anneal.theory.l1.Lasso": "l0anneal.theory.l1.Lasso-class",
    "l0anneal.theory.rsb.Clusters": "l0anneal.theory.rsb.Clusters-class",
}
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the section "Parameters" has them
numpydoc_show_class_members = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
myst_url_schemes = {"http": None, "https": None, "mailto": None, "site": "{{path}}"}

sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "reference/backreferences",
    "doc_module": ("l0anneal",),
    "reference_url": {"l0anneal": None},
    "within_subsection_order": "ExampleTitleSortKey",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "l0anneal"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_prev_next": False,
    "show_toc_level": 2,
    "show_nav_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
