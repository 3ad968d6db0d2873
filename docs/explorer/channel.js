// The scalar channel of the replica-symmetric equations (docs/theory.md, section 2):
//   h ~ (1-ρ̂) N(0, Δ) + ρ̂ N(0, Δ+ασx²),  p(h) = sigmoid(Λ + a h²/2),  E[p] = ρ fixes Λ.
// A port of l0anneal/theory/channel.py. Variances are in units of P = σξ² + ρ̂σx².
"use strict";
{
  // The parameters of a problem with σx² = 1, in units where P = 1. `P` converts back.
  function makeModel({ alpha, rho, rhoHat, noise }) {
    const P = noise + rhoHat;
    const m = { alpha, rho, rhoHat, P, sx2: rhoHat > 0 ? 1 / P : 0, sxi2: noise / P };
    m.planted = rhoHat > 0;
    m.gap = alpha - rho;
    m.s0 = alpha / m.gap;
    return m;
  }

  // The exact Δ and D at infinite temperature.
  function infiniteTemperature(m) {
    const power = m.rhoHat * m.sx2;
    const delta = (m.sxi2 + power * (1 - m.rho) ** 2) / (1 - m.rho ** 2 / m.alpha);
    return [delta, (m.rho * (1 - m.rho) * (delta + m.alpha * power)) / m.gap];
  }

  function gridsAt(m, delta, a, lam) {
    const mixture = m.planted
      ? [[1 - m.rhoHat, delta], [m.rhoHat, delta + m.alpha * m.sx2]]
      : [[1, delta]];
    return mixture.map(([share, V]) => ({ share, V, A: a * V, ...L0.sigmoidGrid(a * V, lam) }));
  }

  // By how much E[p] exceeds ρ, on a logarithmic scale, and the derivative in Λ. Near ρ = ρ̂ the
  // selected zeros are compared with the nonzeros left out, because E[p] - ρ cancels there.
  function excess(m, target, sums) {
    let ep = 0, eq = 0, spread = 0;
    for (const s of sums) [ep, eq, spread] = [ep + s.p, eq + s.q, spread + s.pq];
    if (!(ep > 0 && eq > 0)) return [ep - eq, 0];
    const error = Math.log(ep / eq) - target;
    const room = m.rho - m.rhoHat;
    if (sums.length === 2 && Math.abs(error) <= 0.1) {
      const zeros = sums[0].p + Math.max(-room, 0), nonzeros = sums[1].q + Math.max(room, 0);
      if (zeros > 0 && nonzeros > 0) {
        return [Math.log(zeros / nonzeros), sums[0].pq / zeros + sums[1].pq / nonzeros];
      }
    }
    return [error, spread / (ep * eq)];
  }

  // The Λ with E[p] = ρ, by Newton's method inside a bracket that shrinks with every evaluation.
  function multiplier(m, delta, a, guess) {
    const target = Math.log(m.rho / (1 - m.rho));
    let high = target, low = -Infinity; // Λ ≤ logit ρ because a h² ≥ 0
    let lam = guess === undefined ? target - 0.5 * a * delta : Math.min(guess, target);
    let grids = [], madeFor = Infinity;
    for (let i = 0; i < 200; i++) {
      if (!(Math.abs(lam - madeFor) <= 1)) { // a unit of Λ shifts the step by its own width
        grids = gridsAt(m, delta, a, lam);
        madeFor = lam;
      }
      const shift = lam - madeFor;
      const sums = grids.map((g) => {
        let p = 0, q = 0, pq = 0;
        for (let j = 0; j < g.n; j++) {
          const e = Math.exp(-Math.abs(g.u[j] + shift)), big = 1 / (1 + e), w = g.weight[j];
          const up = g.u[j] + shift > 0;
          p += w * (up ? big : e * big);
          q += w * (up ? e * big : big);
          pq += w * e * big * big;
        }
        return { p: g.share * p, q: g.share * q, pq: g.share * pq };
      });
      const [error, rate] = excess(m, target, sums);
      if (error > 0) high = Math.min(high, lam); else low = Math.max(low, lam);
      const step = rate > 0 ? -error / rate : NaN;
      if (Math.abs(step) <= 1e-7 || Math.abs(error) <= 1e-15) { // the next step is below rounding
        return { lam: lam + (step || 0), shift: shift + (step || 0), grids };
      }
      let next = lam + step;
      if (!(low < next && next < high)) {
        next = low > -Infinity ? 0.5 * (low + high) : 2 * lam - target - 1;
      }
      if (next === lam) return { lam, shift, grids };
      lam = next;
    }
    throw new L0.ConvergenceError(`the multiplier of E[p] = ρ did not converge at Δ=${delta}, a=${a}`);
  }

  // The right-hand sides of the equations for Δ and D at (Δ, a), and their derivatives with respect
  // to (log Δ, log a). Δ is a sum of positive terms: P - 2m + q would cancel near the planted state.
  function channelAt(m, delta, a, guess) {
    const { lam, shift, grids } = multiplier(m, delta, a, guess);
    const mass = [0, 0, 0]; // derivatives in Λ, log Δ and log a
    const rhs = [m.sxi2, 0, 0, 0], spread = [0, 0, 0, 0]; // the value and the same derivatives
    grids.forEach((g, k) => {
      const B = m.alpha * m.sx2;
      let v0 = 0, v1 = 0, skew = 0, skewF = 0, sq = 0, slope = 0, slopeF = 0, cross = 0;
      for (let j = 0; j < g.n; j++) {
        const u = g.u[j] + shift, e = Math.exp(-Math.abs(u)), big = 1 / (1 + e);
        const p = u > 0 ? big : e * big, q = u > 0 ? e * big : big;
        const mz = g.weight[j] * g.z2[j], mv = mz * p * q, f = 0.5 * g.A * g.z2[j];
        v0 += g.weight[j] * p * q;
        v1 += mv;
        skew += mv * (q - p);
        skewF += mv * (q - p) * f;
        const error = k === 0 ? p : B * q - delta * p;
        sq += mz * error * error;
        slope += mv * error;
        slopeF += mv * error * f;
        cross += mz * error * p;
      }
      const chain = delta / g.V; // ∂log A/∂log Δ; ∂log A/∂log a = 1
      mass[0] += g.share * v0;
      mass[1] += g.share * 0.5 * g.A * v1 * chain;
      mass[2] += g.share * 0.5 * g.A * v1;
      spread[0] += g.share * g.V * v1;
      spread[1] += g.share * g.V * skew;
      spread[2] += g.share * (g.V * skewF * chain + delta * v1);
      spread[3] += g.share * g.V * skewF;
      const scale = k === 0 ? (g.share * delta) / m.alpha : g.share / (m.alpha * g.V);
      const rate = k === 0 ? 2 * scale : -2 * scale * g.V;
      rhs[0] += scale * sq + (k === 0 ? 0 : g.share * m.sx2 * chain);
      rhs[1] += rate * slope;
      rhs[2] += rate * slopeF * chain;
      rhs[2] += k === 0
        ? scale * sq
        : (g.share * m.sx2 * chain * B) / g.V - scale * sq * chain - 2 * scale * delta * cross;
      rhs[3] += rate * slopeF;
    });
    const along = (average, i) => average[i + 1] - (average[1] * mass[i]) / mass[0];
    return {
      m, delta, a, lam, shift, grids,
      deltaRhs: rhs[0],
      dRhs: spread[0] / m.gap,
      deltaGradient: [along(rhs, 1), along(rhs, 2)],
      dGradient: [along(spread, 1) / m.gap, along(spread, 2) / m.gap],
    };
  }

  L0.ConvergenceError = class extends Error {};
  Object.assign(L0, { makeModel, infiniteTemperature, channelAt });
}
