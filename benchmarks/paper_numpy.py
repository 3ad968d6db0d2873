"""The paper's own algorithm in NumPy: Algorithms 1 and 2 with its matrix-inversion update.

Each proposal forms the inverse Gram matrix of the proposed support by the paper's two rank-one
steps, O(K²), and from it the energy. The Gram matrix is computed beforehand, which the paper does
not do; without it each proposal would cost O(MK) more.
"""

import math

import numpy as np


def paper_annealing(A, y, k, mus, tau, seed):
    """Anneal as the paper does; return the final support and its energy."""
    rng = np.random.default_rng(seed)
    n = A.shape[1]
    G, b, total = A.T @ A, A.T @ y, float(y @ y)
    order = rng.permutation(n)
    ones, zeros = order[:k].copy(), order[k:].copy()
    inverse = np.linalg.inv(G[np.ix_(ones, ones)])
    b_ones = b[ones]
    energy = 0.5 * (total - b_ones @ inverse @ b_ones)
    for mu in mus:
        for _ in range(tau):
            slots = rng.integers(k, size=n)
            outs = rng.integers(n - k, size=n)
            uniforms = rng.random(n)
            for slot, out, uniform in zip(slots.tolist(), outs.tolist(), uniforms.tolist()):
                j = zeros[out]
                # deletion: U − u uᵀ/u_kk, whose row and column `slot` vanish
                u = inverse[slot]
                deleted = inverse - np.outer(u, u / u[slot])
                # addition of j into the slot just freed
                g = G[j].take(ones)
                g[slot] = 0.0
                w = deleted @ g
                w[slot] = -1.0
                scale = 1.0 / (G[j, j] - g @ w)
                deleted[slot] = 0.0
                deleted[:, slot] = 0.0
                proposed = deleted + np.outer(w, scale * w)
                b_proposed = b_ones.copy()
                b_proposed[slot] = b[j]
                new_energy = 0.5 * (total - b_proposed @ (proposed @ b_proposed))
                delta = new_energy - energy
                if delta <= 0 or uniform < math.exp(-mu * delta):
                    inverse, b_ones, energy = proposed, b_proposed, new_energy
                    ones[slot], zeros[out] = j, ones[slot]
        # rounding accumulates here too
        inverse = np.linalg.inv(G[np.ix_(ones, ones)])
    return np.sort(ones), energy
