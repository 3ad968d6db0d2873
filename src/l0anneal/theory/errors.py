"""The error that the solvers raise when they do not converge."""

__all__ = ["ConvergenceError"]


class ConvergenceError(RuntimeError):
    """Raised when a solver does not reach its tolerance.

    The message names the equation and the parameters.  A solver never returns its last iterate
    instead.

    See Also
    --------
    l0anneal.theory.ReplicaSymmetric : May raise it.

    Examples
    --------
    >>> from l0anneal.theory import ConvergenceError, ReplicaSymmetric, rsb
    >>> noise = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1)
    >>> try:
    ...     rsb.clusters(noise, y=1.0)
    ... except ConvergenceError:
    ...     print("no solution at this y")
    no solution at this y
    """
