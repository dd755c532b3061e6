/** How a source does: what the server says of it, or what arrives from it if that is worse. Pure. */
import type { Overview, SignatureGroup } from '../api/types.ts'
import { surgeOf } from './surge.ts'

export type Condition = Pick<Overview['sources'][number], 'health' | 'note'>

/** Times the usual arrivals. */
const DEGRADED = 10
const FAILING = 100

const WORSE = ['off', 'ok', 'warn', 'fail'] as const

/** `causes` are the largest ones. */
export function conditionOf(
  { source, health, note }: Condition & Pick<Overview['sources'][number], 'source'>,
  causes: readonly SignatureGroup[],
  now: number,
): Condition {
  const surges = causes
    .filter(({ sources }) => sources.includes(source))
    .flatMap((cause) => surgeOf(cause, now) ?? [])
  const worst = surges.toSorted((a, b) => b.times - a.times)[0]
  if (worst === undefined || worst.times < DEGRADED) return { health, note }
  const seen = worst.times < FAILING ? 'warn' : 'fail'
  if (WORSE.indexOf(seen) <= WORSE.indexOf(health)) return { health, note }
  const arrivals =
    worst.words === 'usually none' ? 'letters where there are usually none' : `${worst.words} arrivals`
  return { health: seen, note: note === null ? arrivals : `${arrivals}; ${note}` }
}
