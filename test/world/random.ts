/** Random numbers that can be drawn again: a failing run prints its seed. */

export interface Random {
  readonly seed: number
  /** A whole number from `low` to `high`, both included. */
  whole(low: number, high: number): number
  /** True with this probability. */
  chance(probability: number): boolean
}

/** A generator (mulberry32) from `BARTLEBY_TEST_SEED`, or from a seed of its own. */
export function seededRandom(seed = Number(process.env.BARTLEBY_TEST_SEED ?? freshSeed())): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    seed,
    whole: (low, high) => low + Math.floor(next() * (high - low + 1)),
    chance: (probability) => next() < probability,
  }
}

const freshSeed = (): number => crypto.getRandomValues(new Uint32Array(1))[0] ?? 1
