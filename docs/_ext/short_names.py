"""Names in single backticks: those of l0anneal need no module, and others stay text."""

import re

PREFIXES = ("l0anneal.", "l0anneal.theory.")
OTHERS = re.compile(
    r"(numpy|scipy|sklearn|joblib|xarray|matplotlib|arviz|dask|pandas)\b|l0anneal\.ensembles$"
)


def resolve(app, env, node, contnode):
    if node.get("refdomain") != "py":
        return None
    for prefix in PREFIXES:
        found = env.domains.python_domain.resolve_xref(
            env, node["refdoc"], app.builder, "obj", prefix + node["reftarget"], node, contnode
        )
        if found is not None:
            return found
    return contnode if OTHERS.match(node["reftarget"]) else None


def setup(app):
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
