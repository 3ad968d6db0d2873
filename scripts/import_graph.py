"""Print which rooms of a package import which, and fail if modules import each other in a cycle."""

import sys
from graphlib import CycleError, TopologicalSorter

import grimp


def main(package: str = "l0anneal") -> int:
    """Print one line for each room; return 1 if there is a cycle between modules or rooms."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)
    modules = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}

    def room(module: str) -> str:
        return ".".join(module.split(".")[1:2]) or package

    rooms: dict[str, set[str]] = {}
    for name, imported in modules.items():
        rooms.setdefault(room(name), set()).update(map(room, imported))
    for name, imported in rooms.items():
        imported.discard(name)

    width = max(map(len, rooms))
    for name in sorted(rooms):
        size = sum(room(module) == name for module in modules)
        imported = ", ".join(sorted(rooms[name])) or "nothing"
        print(f"{name:{width}}  {size:3d} module{'s' if size > 1 else ' '}  imports {imported}")
    for edges in (modules, rooms):
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as error:
            print("cycle: " + " <- ".join(error.args[1]), file=sys.stderr)
            return 1
    print(f"{len(modules)} modules in {len(rooms)} rooms, no cycle")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
