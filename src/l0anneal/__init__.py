"""The best k columns of a dictionary for a signal, found by annealing; see the README.

The public names are listed in ``__init__.pyi``, which type checkers read. Each name is imported when it
is first used, so that ``import l0anneal`` is quick and `l0anneal.theory` needs no compiler.
"""

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("l0anneal")
