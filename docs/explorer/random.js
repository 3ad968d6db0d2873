// Seeded random numbers: sfc32 (Doty-Humphrey's small fast counter generator), so that one seed gives
// one instance and one run on every machine.
"use strict";
{
  class Random {
    constructor(seed, stream = 0) {
      this.a = seed | 0;
      this.b = (seed / 4294967296) | 0;
      this.c = stream | 0;
      this.d = 1;
      for (let i = 0; i < 20; i++) this.bits();
    }

    bits() {
      const sum = (((this.a + this.b) | 0) + this.d) | 0;
      this.d = (this.d + 1) | 0;
      this.a = this.b ^ (this.b >>> 9);
      this.b = (this.c + (this.c << 3)) | 0;
      this.c = (((this.c << 21) | (this.c >>> 11)) + sum) | 0;
      return sum >>> 0;
    }

    // A number from [0, 1) with 53 random bits.
    uniform() {
      return ((this.bits() >>> 5) * 67108864 + (this.bits() >>> 6)) / 9007199254740992;
    }

    below(n) {
      return Math.floor(this.uniform() * n); // the bias is below 1e-13 for the sizes used here
    }

    normal() {
      const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
      return radius * Math.cos(2 * Math.PI * this.uniform());
    }

    // 0, ..., n-1 in random order.
    permutation(n) {
      const order = Array.from({ length: n }, (_, i) => i);
      for (let i = n - 1; i > 0; i--) {
        const j = this.below(i + 1);
        [order[i], order[j]] = [order[j], order[i]];
      }
      return order;
    }
  }

  L0.Random = Random;
}
