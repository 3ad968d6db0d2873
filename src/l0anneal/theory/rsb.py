r"""The ground state with one step of replica symmetry breaking (1RSB) at T = 0.

Where the de Almeida-Thouless condition fails, the replica-symmetric "achievable limit" is too
optimistic.  With noise only, this happens well above the freezing temperature.  In the 1RSB theory
supports form clusters, and y is the inverse temperature that weights the lowest energy of each
cluster.  The complexity Σ(y) counts the clusters; the ground state is where Σ vanishes
(docs/theory.md, section 8).

For each coefficient, in the field h of the channel of :mod:`~l0anneal.theory.channel`,

    S2 = S1 + y d,  t = sqrt(2 S1 ℓ),  η ~ N(h, d),  η0 ~ N(h S1/S2, d S1/S2),
    W = exp(-yℓ + y h²/(2 S2)) sqrt(S2/S1),   Z = P(|η0| < t) + W P(|η| > t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_ndtr, ndtr

from l0anneal.theory.channel import Model
from l0anneal.theory.checks import check_positive
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.quadrature import Z_MAX, Array, even_gaussian, sigmoid_panels
from l0anneal.theory.replica import ReplicaSymmetric
from l0anneal.theory.roots import brentq

__all__ = ["Clusters", "clusters", "ground_state"]

#: Largest relative residual of the saddle-point equations in a returned solution.
TOLERANCE = 1e-11

_LOCAL = np.array([-12.0, -8.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 8.0, 12.0])


@dataclass(frozen=True)
class Clusters:
    """The clusters of supports at T = 0 and one y.

    Attributes
    ----------
    y : float
        Inverse temperature that weights the lowest energy of each cluster.
    distortion : float
        ε of these lowest energies.
    complexity : float
        Σ, the logarithm of the number of clusters, per column; zero in the ground state.
    potential : float
        Φ = Σ - yαε, with dΦ/dy = -αε.
    delta, d, s1, penalty : float
        The order parameters Δ and d, the response S1, and the cost ℓ of selecting a column.

    See Also
    --------
    l0anneal.theory.rsb.clusters : Compute them.
    l0anneal.theory.rsb.ground_state : Where their complexity vanishes.

    Examples
    --------
    >>> state = clusters(ReplicaSymmetric(0.5, 0.2, sigma_xi2=1), 21.0)
    >>> print(f"{state.complexity:.4f} {state.potential:.4f}")
    -0.0025 -0.1260
    """

    y: float
    distortion: float
    complexity: float
    potential: float
    delta: float
    d: float
    s1: float
    penalty: float


def _phi(x: Array) -> Array:
    return np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class _Averages:
    """Averages over h at given (y, S1, d, Δ, ℓ)."""

    rho: float
    second: float  # E[⟨η²⟩] of the selected columns
    overlap: float  # E[⟨η⟩²]
    m: float
    boundary: float  # E[t f/Z]
    log_z: float


def _averages(
    model: Model, y: float, s1: float, d: float, delta: float, penalty: float
) -> _Averages:
    s2 = s1 + y * d
    t, root = math.sqrt(2.0 * s1 * penalty), math.sqrt(d)
    width, shrink = math.sqrt(d * s1 / s2), s1 / s2
    offset = -y * penalty + 0.5 * math.log(s2 / s1)
    mixture = [(1.0, delta)]
    if model.planted:
        mixture = [
            (1.0 - model.rho_hat, delta),
            (model.rho_hat, delta + model.alpha * model.sigma_x2),
        ]
    total = np.zeros(6)
    for k, (weight, variance) in enumerate(mixture):
        scale = math.sqrt(variance)
        local = np.clip((t + root * _LOCAL) / scale, 0.0, Z_MAX)
        breaks = np.sort(np.concatenate((sigmoid_panels(y * variance / s2, offset), local)))
        z, measure = even_gaussian(breaks)
        h = scale * z
        up, down = (t - h) / root, (t + h) / root
        i0 = ndtr(-up) + ndtr(-down)
        i1 = h * i0 + root * (_phi(up) - _phi(down))
        i2 = (h * h + d) * i0 + root * ((t + h) * _phi(up) + (t - h) * _phi(down))
        high, low = (t - h * shrink) / width, (-t - h * shrink) / width
        # log P(|η0| < t) is computed from the lower tail because at large h the whole interval
        # lies far below the mean.
        log_high = log_ndtr(high)
        log_in = log_high + np.log1p(-np.exp(log_ndtr(low) - log_high))
        log_out = offset + 0.5 * y * h * h / s2 + np.log(i0)
        log_z = np.logaddexp(log_in, log_out)
        p = expit(log_out - log_in)
        mean = p * i1 / i0
        edge = t * (_phi(high) + _phi(low)) / width * np.exp(-log_z)
        # m needs E[x̂ | h], which is proportional to h for nonzero coefficients and zero otherwise.
        signal = (model.sigma_x2 / variance if k == 1 else 0.0) * h * mean
        total += weight * np.array([p, p * i2 / i0, mean * mean, signal, edge, log_z]) @ measure
    return _Averages(*(float(v) for v in total))


def _penalty(model: Model, y: float, s1: float, d: float, delta: float, start: float) -> float:
    """Return the ℓ with E[selected] = ρ; the average decreases as ℓ increases."""

    def excess(log_penalty: float) -> float:
        rho = _averages(model, y, s1, d, delta, math.exp(log_penalty)).rho
        if not rho > 0.0:
            raise ConvergenceError(f"no selected fraction at y={y:.6g} in units of 1/P ({model})")
        return math.log(rho / model.rho)

    def bound(sign: float) -> float:
        """Step away from the start, in the direction of ``sign``, past the change of sign."""
        position, step = math.log(start), 0.1
        while sign * excess(position) > 0.0:
            position, step = position + sign * step, 2.0 * step
            if step > 500.0:
                raise ConvergenceError(
                    f"no cost per column gives the selected fraction {model.rho} at y={y:.6g} "
                    f"in units of 1/P ({model})"
                )
        return position

    low, high = bound(-1.0), bound(1.0)
    if low == high:
        return start
    return math.exp(brentq(excess, low, high, xtol=1e-15, rtol=1e-14))


def _map(model: Model, y: float, point: Array) -> Array:
    """Return the logarithms of the right-hand sides for (S1, d, Δ, ℓ)."""
    s1, d, delta, penalty = (float(v) for v in np.exp(point))
    average = _averages(model, y, s1, d, delta, penalty)
    power = model.sigma_xi2 + model.rho_hat * model.sigma_x2
    new_s1 = model.s0 + s1 * average.boundary / model.gap
    new_d = (average.second - average.overlap) / model.alpha
    new_delta = power - 2.0 * average.m + average.overlap / model.alpha
    if min(new_d, new_delta) <= 0.0:
        raise ConvergenceError(
            f"the clusters at y={y:.6g} in units of 1/P left the physical region ({model})"
        )
    # One Newton step for E[selected] = ρ, in the natural scale exp(-yℓ) of ℓ.
    new_penalty = math.log(penalty) + math.log(average.rho / model.rho) / max(1.0, y * penalty)
    return np.array([math.log(new_s1), math.log(new_d), math.log(new_delta), new_penalty])


def _solve(model: Model, y: float, start: Array) -> Array:
    """Solve for the logarithms of (S1, d, Δ, ℓ) by damped iteration and then Newton."""
    point = np.asarray(start, dtype=float)
    s1, d, delta, penalty = (float(v) for v in np.exp(point))
    point[3] = math.log(_penalty(model, y, s1, d, delta, penalty))
    # A few damped iterations lead from the replica-symmetric start into the range of Newton.
    for _ in range(12):
        new = _map(model, y, point)
        if np.abs(new - point).max() < 0.02:
            break
        point[:3] += 0.5 * (new[:3] - point[:3])
        s1, d, delta, penalty = (float(v) for v in np.exp(point))
        point[3] = math.log(_penalty(model, y, s1, d, delta, penalty))
    best = np.inf
    for _ in range(40):
        value = _map(model, y, point) - point
        size = float(np.abs(value).max())
        if size <= 1e-15 or (size <= TOLERANCE and size >= 0.5 * best):
            return point
        best = min(best, size)
        step = np.linalg.solve(np.eye(4) - _jacobian(model, y, point), value)
        point = point + step / max(1.0, 2.0 * float(np.abs(step).max()))
    raise ConvergenceError(
        f"the clusters at y={y:.6g} in units of 1/P did not converge: residual {best:.2e} ({model})"
    )


def _jacobian(model: Model, y: float, point: Array) -> Array:
    """Return the Jacobian of the map by central differences."""
    h = 1e-5
    jacobian = np.empty((4, 4))
    for i in range(4):
        shift = np.zeros(4)
        shift[i] = h
        jacobian[:, i] = (_map(model, y, point + shift) - _map(model, y, point - shift)) / (2.0 * h)
    return jacobian


def _clusters(model: Model, y: float, point: Array, variance: float) -> Clusters:
    s1, d, delta, penalty = (float(v) for v in np.exp(point))
    s2 = s1 + y * d
    average = _averages(model, y, s1, d, delta, penalty)
    distortion = 0.5 * (d / (s1 * s2) + delta / s2**2)
    power = model.sigma_xi2 + model.rho_hat * model.sigma_x2
    energy = y * model.alpha * distortion
    potential = (
        -0.5 * model.alpha * math.log(s2 / s1)
        - 0.5 * model.alpha * y * (power + delta) / s2
        + energy
        + y * penalty * model.rho
        + average.log_z
    )
    return Clusters(
        y=y / variance,
        distortion=distortion * variance,
        complexity=potential + energy,
        potential=potential,
        delta=delta * variance,
        d=d * variance,
        s1=s1,
        penalty=penalty * variance,
    )


def _replica_symmetric_start(theory: ReplicaSymmetric, y: float) -> Array:
    """Return a start from the replica-symmetric state at T = 1/y.

    Its equations have the same form, with S0 in place of S1 and with ℓ inside Λ.
    """
    state = theory.at(theory.variance / y, "cooled")
    model, variance = theory.model, theory.variance
    d, delta = state.d / variance, state.delta / variance
    s1 = 1.2 * model.s0
    penalty = max((0.5 * math.log1p(y * d / s1) - state.lam) / y, 0.1 / y)
    return np.log(np.array([s1, d, delta, penalty]))


def clusters(theory: ReplicaSymmetric, y: float) -> Clusters:
    """Solve the 1RSB equations at T = 0 and given y, on the cooled branch.

    Parameters
    ----------
    theory : ReplicaSymmetric
        The problem.
    y : float
        Inverse temperature that weights the lowest energy of each cluster.

    Returns
    -------
    Clusters

    Raises
    ------
    ConvergenceError
        If the solver finds no clusters at this y.

    See Also
    --------
    l0anneal.theory.rsb.Clusters : The result.
    l0anneal.theory.rsb.ground_state : Where their complexity vanishes.

    Examples
    --------
    >>> noise = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1)
    >>> state = clusters(noise, 20.0)
    >>> print(f"{state.distortion:.7f} {state.complexity:.1e}")
    0.0122369 2.3e-03
    """
    check_positive("y", y)
    model, scaled = theory.model, y * theory.variance
    point = _solve(model, scaled, _replica_symmetric_start(theory, scaled))
    return _clusters(model, scaled, point, theory.variance)


def ground_state(theory: ReplicaSymmetric) -> Clusters:
    """Return the state of lowest distortion in the 1RSB theory, where Σ(y) = 0.

    Its distortion is a better lower limit than the replica-symmetric one of
    :meth:`ReplicaSymmetric.freezing`, which lies below it.

    Parameters
    ----------
    theory : ReplicaSymmetric
        The problem.

    Returns
    -------
    Clusters

    Raises
    ------
    ValueError
        If the cooled branch does not freeze; the theory then sets no lower limit above zero.
    ConvergenceError
        If the solver does not find the y at which the complexity vanishes.

    See Also
    --------
    l0anneal.theory.rsb.clusters : The clusters at one parameter.
    l0anneal.theory.ReplicaSymmetric : The theory without symmetry breaking.

    Examples
    --------
    >>> ground = ground_state(ReplicaSymmetric(0.5, 0.2, sigma_xi2=1))
    >>> print(f"y={ground.y:.4f} eps={ground.distortion:.7f}")
    y=20.4811 eps=0.0120065
    """
    frozen = theory.freezing("cooled")
    if frozen is None:
        raise ValueError(
            f"the cooled branch has no frozen ground state because its entropy stays positive "
            f"({theory}); check that theory.freezing() is not None first"
        )
    model, variance = theory.model, theory.variance
    high = variance / frozen.temperature
    point = _solve(model, high, _replica_symmetric_start(theory, high))
    if _clusters(model, high, point, variance).complexity > 0.0:
        raise ConvergenceError(
            f"the complexity is still positive at y = 1/T_freezing = {high / variance:.6g} "
            f"({theory})"
        )
    # Lower y until the complexity is positive, and start from the previous solution each time.
    known = {math.log(high): point}
    low = high
    for _ in range(40):
        low /= 1.1
        point = _solve(model, low, point)
        known[math.log(low)] = point
        if _clusters(model, low, point, variance).complexity > 0.0:
            break
    else:
        raise ConvergenceError(f"found no y with a positive complexity ({theory})")

    def complexity(log_y: float) -> float:
        nearest = min(known, key=lambda key: abs(key - log_y))
        solution = _solve(model, math.exp(log_y), known[nearest])
        known[log_y] = solution
        return _clusters(model, math.exp(log_y), solution, variance).complexity

    log_y = brentq(complexity, math.log(low), math.log(1.1 * low), xtol=1e-12, rtol=1e-12)
    complexity(log_y)
    return _clusters(model, math.exp(log_y), known[log_y], variance)
