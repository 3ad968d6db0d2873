"""Names of l0anneal become links to the reference, without their module.

In docstrings and examples these are names in single backticks; names of other packages stay text. In
Markdown pages they are names in code, such as `solve` or `theory.ReplicaSymmetric`, outside of titles
and links.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref

PREFIXES = ("l0anneal.", "l0anneal.theory.")
OTHERS = re.compile(
    r"(numpy|scipy|sklearn|joblib|xarray|matplotlib|arviz|dask|pandas)\b|l0anneal\.ensembles$"
)
NAME = re.compile(r"[A-Za-z]\w*(\.\w+)*")


def found(app, node, target, contnode):
    """Return a link to a name of l0anneal; None if there is no such name."""
    for prefix in PREFIXES:
        link = app.env.domains.python_domain.resolve_xref(
            app.env, node["refdoc"], app.builder, "obj", prefix + target, node, contnode
        )
        if link is not None:
            return link
    return None


def resolve(app, env, node, contnode):
    if node.get("refdomain") != "py":
        return None
    link = found(app, node, node["reftarget"], contnode)
    if link is None and (node.get("optional") or OTHERS.match(node["reftarget"])):
        return contnode
    return link


def mark_names(app, doctree):
    """Let names in the code of a Markdown page be looked up; those that are not found stay code."""
    if Path(app.env.doc2path(app.env.docname)).suffix != ".md":
        return
    for code in list(doctree.findall(nodes.literal)):
        text = code.astext().removeprefix("l0anneal.")
        if not NAME.fullmatch(text) or isinstance(code.parent, (nodes.title, nodes.reference)):
            continue
        if isinstance(code.parent, pending_xref):
            continue
        link = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=text, refdoc=app.env.docname, optional=True
        )
        code.replace_self(link)
        link += code


def setup(app):
    app.connect("doctree-read", mark_names)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
