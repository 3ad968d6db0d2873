// Gaussian averages of functions with a narrow step, by composite Gauss-Legendre quadrature.
// The same panels as l0anneal/theory/quadrature.py (docs/theory.md, section 5), with 10 points each.
"use strict";
globalThis.L0 ??= {};
{
  const Z_MAX = 10; // the Gaussian weight there is 2e-22
  const ORDER = 10;
  const DIP = [0.1, 0.3, 1, 2, 3, 4.5, 6, 9];
  const HALF_STEP = [1.5, 3, 5, 8, 12, 18, 26, 40];
  const STEP = [...HALF_STEP.map((d) => -d), 0, ...HALF_STEP];
  const UNIT = [0, 1, 2, 3, 4, 5, 6, 8, Z_MAX];
  const [POINTS, WEIGHTS] = gaussLegendre(ORDER);

  // Nodes and weights on [-1, 1]: zeros of the Legendre polynomial, by Newton's method.
  function gaussLegendre(n) {
    const points = [], weights = [];
    for (let i = 0; i < n; i++) {
      let x = -Math.cos((Math.PI * (i + 0.75)) / (n + 0.5));
      let slope = 1;
      for (let step = 0; step < 10; step++) {
        let [last, now] = [1, x];
        for (let k = 2; k <= n; k++) [last, now] = [now, ((2 * k - 1) * x * now - (k - 1) * last) / k];
        slope = (n * (x * now - last)) / (x * x - 1);
        x -= now / slope;
      }
      points.push(x);
      weights.push(2 / ((1 - x * x) * slope * slope));
    }
    return [points, weights];
  }

  // z², weights and u = offset + gain z²/2 on the nodes of E[f(z)], for even f and standard normal z.
  // Around a step at z0 = √(-2 offset/gain), u is computed from the exact distance z - z0, because the
  // sum loses digits where the step is narrow compared with z0.
  function sigmoidGrid(gain, offset) {
    const step = gain > 0 && offset < 0 ? Math.sqrt((-2 * offset) / gain) : Infinity;
    const origin = step < Z_MAX ? step : 0;
    const breaks = panels(gain, step, origin);
    const most = ORDER * (breaks.length - 1);
    const z2 = new Float64Array(most), weight = new Float64Array(most), u = new Float64Array(most);
    let n = 0;
    for (let i = 1; i < breaks.length; i++) {
      const half = 0.5 * (breaks[i] - breaks[i - 1]);
      if (!(half > 0)) continue;
      for (let j = 0; j < ORDER; j++, n++) {
        const t = breaks[i - 1] + half * (1 + POINTS[j]), z = origin + t;
        z2[n] = z * z;
        weight[n] = half * WEIGHTS[j] * Math.exp(-0.5 * z2[n]) * Math.sqrt(2 / Math.PI);
        u[n] = origin > 0 ? gain * t * (origin + 0.5 * t) : offset + 0.5 * gain * z2[n];
      }
    }
    return { n, z2, weight, u };
  }

  // Sorted panel boundaries in [0, Z_MAX], as distances from `origin`.
  const buffer = new Float64Array(UNIT.length + DIP.length + STEP.length);
  function panels(gain, step, origin) {
    let n = 0;
    const add = (z) => { buffer[n++] = Math.min(Math.max(z, -origin), Z_MAX - origin); };
    for (const z of UNIT) add(z - origin);
    const width = 1 / Math.sqrt(gain);
    if (gain > 0) for (const d of DIP) add(d * width - origin);
    if (step < 3 * Z_MAX) for (const d of STEP) add(step - origin + d / (gain * step));
    return buffer.subarray(0, n).sort();
  }

  L0.sigmoidGrid = sigmoidGrid;
}
