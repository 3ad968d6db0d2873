"""Members of a class that its page lists: those of l0anneal, also inherited ones, and no others."""

import inspect


def defined_here(thing):
    """Whether a member was defined in l0anneal and not in scikit-learn or in Python."""
    thing = getattr(thing, "fget", None) or getattr(thing, "func", None) or thing
    return str(getattr(inspect.unwrap(thing), "__module__", "")).startswith("l0anneal")


def skip(app, kind, name, thing, skipped, options):
    return True if kind == "class" and not defined_here(thing) else None


def setup(app):
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
