// The observables at a saddle point, and the solver at fixed temperature (docs/theory.md, sections 2
// and 3): ports of l0anneal/theory/states.py and fixed_temperature.py.
"use strict";
{
  // ε, MSE, s, g and the other observables of the channel at temperature t (in units of P).
  function observe(channel, t, d = channel.dRhs) {
    const { m, delta, lam, shift, grids } = channel;
    let entropy = 0, replicon = 0, hits = 0, deficit = 0;
    grids.forEach((g, k) => {
      let h2 = 0, r = 0, ep = 0, left = 0;
      for (let j = 0; j < g.n; j++) {
        const u = g.u[j] + shift, size = Math.abs(u), e = Math.exp(-size), big = 1 / (1 + e);
        const p = u > 0 ? big : e * big, q = u > 0 ? e * big : big, w = g.weight[j];
        h2 += w * (Math.log1p(e) + (e > 0 ? size * e * big : 0)); // the binary entropy of p
        r += w * (p + g.A * g.z2[j] * p * q) ** 2;
        ep += w * p;
        left += w * q * g.z2[j];
      }
      entropy += g.share * h2;
      replicon += (g.share * r) / m.alpha;
      if (k === 1) [hits, deficit] = [g.share * ep, g.share * m.sx2 * left];
    });
    const S = m.s0 + d / t, a = 1 / (m.s0 * t + d);
    const eps = 0.5 * (d / (m.s0 * S) + delta / S ** 2);
    const bracket = (3 * d) / m.s0 - 2 * m.sxi2 - 2 * deficit + (2 * delta) / S;
    const s = entropy - 0.5 * m.gap * Math.log1p(d / (m.s0 * t)) + 0.5 * m.alpha * a * bracket;
    return {
      T: t * m.P, eps: eps * m.P, mse: (delta - m.sxi2 + d) * m.P, s, g: s - (m.alpha * eps) / t,
      at: replicon, precision: hits / m.rho, delta: delta * m.P, d: d * m.P, lam,
      x: Math.log(delta), logD: Math.log(d), // in units of P, where the solvers continue
    };
  }

  // The state at temperature t near (log Δ, log D), by Newton's method; null if Newton strays.
  function newton(m, t, x, logD) {
    let lam;
    for (let i = 0; i < 30; i++) {
      const delta = Math.exp(x), d = Math.exp(logD), a = 1 / (t * m.s0 + d);
      const c = L0.channelAt(m, delta, a, lam);
      lam = c.lam;
      const f0 = Math.log(c.deltaRhs) - x, f1 = Math.log(c.dRhs) - logD;
      if (Math.max(Math.abs(f0), Math.abs(f1)) <= 1e-10) return observe(c, t, d);
      const slope = -a * d; // ∂log a/∂log D
      const j00 = c.deltaGradient[0] / c.deltaRhs - 1, j01 = (c.deltaGradient[1] * slope) / c.deltaRhs;
      const j10 = c.dGradient[0] / c.dRhs, j11 = (c.dGradient[1] * slope) / c.dRhs - 1;
      const det = j00 * j11 - j01 * j10;
      const dx = (j01 * f1 - j11 * f0) / det, dy = (j10 * f0 - j00 * f1) / det;
      if (!(Math.max(Math.abs(dx), Math.abs(dy)) <= 0.3)) return null; // it may reach another branch
      x += dx;
      logD += dy;
    }
    return null;
  }

  Object.assign(L0, { observe, newton });
}
