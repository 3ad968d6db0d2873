"""What goes wrong in a solver, said in words."""


class ConvergenceError(RuntimeError):
    """A solver did not reach its tolerance.

    The message names the equation and the parameters; no last iterate is ever returned instead.
    """
