// Annealing of one small instance: the paper's pair-flip Metropolis move on supports of k columns.
"use strict";
{
  // y = A x̂ + ξ with N columns, M = αN rows and a support of k = ρN columns; ρ̂N columns are planted.
  function makeInstance({ alpha, rho, rhoHat, noise }, N, seed) {
    const random = new L0.Random(seed, 1);
    const M = Math.round(alpha * N), k = Math.round(rho * N), n = Math.round(rhoHat * N);
    if (!(k >= 1 && k < M)) {
      throw new RangeError(`With N = ${N}, a support of ρN = ${k} columns and αN = ${M} rows cannot be annealed: ` +
        "1 ≤ ρN < αN is needed. Take a larger N or other fractions.");
    }
    const A = Array.from({ length: M }, () => Float64Array.from({ length: N }, () => random.normal() / Math.sqrt(N)));
    const planted = random.permutation(N).slice(0, n).sort((a, b) => a - b);
    const xhat = new Float64Array(N);
    for (const j of planted) xhat[j] = random.normal();
    const y = A.map((row) => planted.reduce((sum, j) => sum + row[j] * xhat[j], Math.sqrt(noise) * random.normal()));
    return { N, M, k, A, y, xhat, planted, seed };
  }

  // The tableau of a support S: the Gram matrix of (A, y), swept on the columns of S. For i in S and j
  // outside: t[i][i] = -(G_SS⁻¹)_ii, t[i][j] = (G_SS⁻¹ G)_ij, t[j][j] = squared distance of column j from
  // the span of S, t[i][N] = x_i, t[j][N] = A_j · residual, and t[N][N] = ‖residual‖².
  class Chain {
    constructor(instance, support, random) {
      Object.assign(this, { instance, random, inside: [...support], accepted: 0 });
      const chosen = new Set(support);
      this.outside = Array.from({ length: instance.N }, (_, j) => j).filter((j) => !chosen.has(j));
      this.refresh();
    }

    // Compute the tableau from A and y, which removes the rounding errors of many pivots.
    refresh() {
      const { A, y, N, M } = this.instance, column = (i, j) => (j === N ? y[i] : A[i][j]);
      this.t = Array.from({ length: N + 1 }, (_, a) => Float64Array.from({ length: N + 1 }, (_, b) => {
        let sum = 0;
        for (let i = 0; i < M; i++) sum += column(i, a) * column(i, b);
        return sum;
      }));
      for (const j of this.inside) this.pivot(j, 1);
    }

    // Sweep on column k: it enters the support (sign 1) or leaves it (sign -1).
    pivot(k, sign) {
      const { t } = this, row = t[k], p = row[k], n = row.length;
      for (let a = 0; a < n; a++) {
        if (a === k) continue;
        const other = t[a], factor = other[k] / p;
        if (factor !== 0) for (let b = 0; b < n; b++) other[b] -= factor * row[b];
      }
      for (let b = 0; b < n; b++) if (b !== k) row[b] = t[b][k] = (sign * row[b]) / p;
      row[k] = -1 / p;
    }

    get energy() {
      const { N } = this.instance;
      return Math.max(0, 0.5 * this.t[N][N]);
    }

    // N proposals at inverse temperature μ: exchange a random column of S for a random one outside, and
    // accept with probability min(1, exp(-μ ΔE)).
    sweep(mu) {
      const { random, inside, outside } = this, { N } = this.instance;
      for (let n = 0; n < N; n++) {
        const { t } = this;
        const at = random.below(inside.length), to = random.below(outside.length);
        const i = inside[at], j = outside[to], h = -t[i][i], x = t[i][N];
        const left = t[j][j] + t[i][j] ** 2 / h; // squared distance of column j from the span of S \ i
        const gain = t[j][N] + (x * t[i][j]) / h; // its product with the residual
        const change = 0.5 * ((x * x) / h - (gain * gain) / left);
        if (!(left > 1e-9) || (change > 0 && random.uniform() >= Math.exp(-mu * change))) continue;
        this.pivot(i, -1);
        this.pivot(j, 1);
        [inside[at], outside[to]] = [j, i];
        if (++this.accepted % 500 === 0) this.refresh();
      }
    }
  }

  // The planted columns with random others, or as many of them as fit: where heating begins.
  function plantedStart(instance, random) {
    const rest = random.permutation(instance.N).filter((j) => !instance.planted.includes(j));
    return [...instance.planted, ...rest].slice(0, instance.k);
  }

  // Visit the temperatures in order, with τ sweeps at each; yield the mean ε = E/M of each.
  function* anneal(chain, temperatures, tau) {
    for (const T of temperatures) {
      let sum = 0;
      for (let i = 0; i < tau; i++) {
        chain.sweep(1 / T);
        sum += chain.energy;
      }
      yield [T, sum / tau / chain.instance.M];
    }
  }

  // The mean of ε at one temperature, with its standard error from the means of 32 batches, each of which
  // is much longer than the autocorrelation time unless the run is short. The first fifth is discarded.
  function* sampleAt(chain, T, sweeps) {
    const values = [];
    for (let i = 0; i < sweeps; i++) {
      chain.sweep(1 / T);
      if (i >= sweeps / 5) values.push(chain.energy / chain.instance.M);
      if (i % 10 === 9) yield [T, values.length ? average(values) : chain.energy / chain.instance.M];
    }
    const size = Math.floor(values.length / 32), batches = [];
    for (let b = 0; b < 32; b++) batches.push(average(values.slice(b * size, (b + 1) * size)));
    const mean = average(batches);
    const error = Math.sqrt(batches.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (31 * 32));
    return { T, mean, error, sweeps };
  }

  const average = (values) => values.reduce((sum, v) => sum + v, 0) / values.length;

  Object.assign(L0, { makeInstance, Chain, plantedStart, anneal, sampleAt });
}
