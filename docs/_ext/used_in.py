"""The directive ``used-in``: the gallery items that use an object, with a heading, if there are any."""

import json
from pathlib import Path

from sphinx_gallery.directives import MiniGallery


class UsedIn(MiniGallery):
    """As sphinx-gallery's ``minigallery``, which puts its heading also where nothing follows."""

    def run(self):
        settings = self.state.document.settings
        folder = settings.env.config.sphinx_gallery_conf["backreferences_dir"]
        path = Path(settings.env.srcdir, folder, "backreferences_all.json")
        settings.env.note_dependency(str(path))
        used = json.loads(path.read_text("utf-8"))
        self.arguments = [" ".join(n for n in self.arguments[0].split() if used.get(n))]
        self.options["add-heading"] = "In the gallery"
        return super().run() if self.arguments[0] else []


def setup(app):
    app.add_directive("used-in", UsedIn)
    return {"parallel_read_safe": True}
