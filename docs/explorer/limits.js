// Limits of other methods: ports of l0anneal/theory/l1.py, bayes.py and phases.py.
"use strict";
{
  const phi = (t) => Math.exp(-0.5 * t * t) / Math.sqrt(2 * Math.PI);

  // P(|z| > t) for a standard normal z, as a Gaussian average with a step at t.
  function tails(t) {
    let sum = 0;
    const n = 400, width = 10 / n; // Simpson's rule over the ten standard deviations beyond t
    for (let i = 0; i <= n; i++) sum += (i === 0 || i === n ? 1 : i % 2 ? 4 : 2) * phi(t + i * width);
    return (2 * sum * width) / 3;
  }

  // E[(|z| - t)₊²].
  const e2 = (t) => (1 + t * t) * tails(t) - 2 * t * phi(t);

  // Basis pursuit recovers x̂ without noise for α > min over θ of ρ̂(1+θ²) + (1-ρ̂)E2(θ).
  function l1Limit(rhoHat) {
    if (rhoHat <= 0 || rhoHat >= 1) return rhoHat;
    const weight = rhoHat / (1 - rhoHat);
    const theta = L0.rootBetween((t) => t * (weight + tails(t)) - 2 * phi(t), 0, 8, 1e-9);
    return rhoHat * (1 + theta ** 2) + (1 - rhoHat) * e2(theta);
  }

  // ε of the LASSO with ρN columns on pure noise, and of least squares on its columns.
  function l1OnNoise({ alpha, rho, noise }) {
    const theta = L0.rootBetween((t) => tails(t) - rho, 0, 8, 1e-10), second = e2(theta);
    const shrink = (1 - rho / alpha) ** 2, delta1 = noise / (1 - second / alpha);
    const boundary = 2 * theta * phi(theta), b = boundary / (alpha - rho);
    const r = ((1 + b) * (alpha - second)) / (alpha - rho + b * (alpha - second));
    const k = (r * b) / (1 + b), gamma = r / (1 + b), c2 = rho + boundary;
    const cross = gamma ** 2 * c2 + 2 * gamma * k * rho + k ** 2 * second - rho * r ** 2;
    const delta2 = (noise + (delta1 / alpha) * cross) / (1 - rho / alpha);
    return { lasso: 0.5 * delta1 * shrink, refit: 0.5 * (delta2 - 2 * k * r * delta1 + k * k * delta1) * shrink };
  }

  // The smallest mean squared error for x ~ Bernoulli-Gauss (σx² = 1), observed as x + √v z.
  function mmse(v, rhoHat) {
    if (v === 0 || rhoHat === 0) return 0;
    const total = v + 1, t = 1 / total;
    const offset = Math.log(rhoHat / (1 - rhoHat)) + 0.5 * Math.log(v / total), slope = 1 / (v * total);
    const average = (variance, sign) => {
      const { n, z2, weight, u } = L0.sigmoidGrid(slope * variance, offset);
      let sum = 0;
      for (let i = 0; i < n; i++) sum += (weight[i] * z2[i]) / (1 + Math.exp(-sign * u[i])) ** 2;
      return sum;
    };
    return rhoHat * (v * t + t * t * total * average(total, -1)) + (1 - rhoHat) * t * t * v * average(v, 1);
  }

  // Bayes-optimal message passing recovers x̂ without noise for α > max over v of mmse(v)/v.
  function ampLimit(rhoHat) {
    if (rhoHat <= 0 || rhoHat >= 1) return rhoHat;
    const ratio = (y) => mmse(Math.exp(y), rhoHat) / Math.exp(y);
    let best = -28, most = 0, step = 0.5;
    const attempt = (y) => { const value = ratio(y); if (value > most) [best, most] = [y, value]; };
    for (let y = -28; y <= 10; y += step) attempt(y);
    for (; step > 1e-4; step /= 2) { // the ratio is smooth: climb with a shrinking step
      const middle = best;
      attempt(middle - step);
      attempt(middle + step);
    }
    return Math.max(rhoHat, most);
  }

  // The mean squared error that Bayes-optimal message passing reaches from an uninformed start.
  function ampError({ alpha, rhoHat, noise }) {
    let v = (noise + rhoHat) / alpha;
    for (let i = 0; i < 3000; i++) {
      const next = (noise + mmse(v, rhoHat)) / alpha;
      if (Math.abs(next - v) <= 1e-9 * v) return mmse(next, rhoHat);
      v = next;
    }
    return null; // α is too close to a threshold
  }

  // The largest slope d log T/ds of the hot curve, from the parabola through the steepest point and its
  // neighbours: two spinodals appear where it becomes positive.
  function steepest(points) {
    const value = (p) => p.slope / p.t;
    const i = points.reduce((best, p, i) => (value(p) > value(points[best]) ? i : best), 1);
    if (i === points.length - 1) return value(points[i]);
    const [l, c, r] = [points[i - 1], points[i], points[i + 1]];
    const back = -Math.hypot(c.x - l.x, c.logA - l.logA), ahead = Math.hypot(r.x - c.x, r.logA - c.logA);
    const [u, v] = [(value(l) - value(c)) / back, (value(r) - value(c)) / ahead];
    const bend = (v - u) / (ahead - back), slope = u - bend * back;
    return value(c) + (bend < 0 ? -(slope ** 2) / (4 * bend) : 0);
  }

  // Of the branch that slow cooling follows without noise: 0 if it reaches the planted state without a
  // metastable state beside it, 1 if it ends at a spinodal above T = 0, 2 if it continues to T = 0.
  function kindOfCooling(alpha, rho, rhoHat) {
    const m = L0.makeModel({ alpha, rho, rhoHat, noise: 0 }), { points, arrives } = L0.hotCurve(m, 0.2);
    if (arrives && points.every((p) => p.t > 0) && steepest(points) <= 0) return 0;
    const i = points.findIndex((p, i) => i > 0 && points[i - 1].slope < 0 && p.slope >= 0);
    if (i < 0) return points.at(-1).t < 0 ? 2 : 1;
    return L0.zeroBetween(m, points[i - 1], points[i], (p) => p.slope).t < 0 ? 2 : 1;
  }

  // Without noise: two branches coexist for ρ above `onset`, and the cooled one reaches T = 0 for ρ
  // above `trapped`, to 1e-4. A generator, because it takes up to a second: it yields between solutions.
  function* metastability(alpha, rhoHat) {
    const span = alpha - rhoHat;
    function* firstRho(least) {
      let [low, high] = [rhoHat + 1e-3 * span, alpha - 1e-3 * span];
      if (kindOfCooling(alpha, high, rhoHat) < least) return null;
      if (kindOfCooling(alpha, low, rhoHat) >= least) return rhoHat;
      while (high - low > 2e-4) {
        yield;
        const middle = 0.5 * (low + high);
        if (kindOfCooling(alpha, middle, rhoHat) >= least) high = middle; else low = middle;
      }
      return 0.5 * (low + high);
    }
    return { onset: yield* firstRho(1), trapped: yield* firstRho(2) };
  }

  Object.assign(L0, { l1Limit, l1OnNoise, ampLimit, ampError, metastability });
}
