/** Whose headers a record carries: the family with the most names, as no tool says who it is. */
import type { RawRecord } from '../event.ts'
import type { KafkaService } from '../settings.ts'
import { FAMILIES, type Family, UBER } from './families.ts'
import { NamedHeaders } from './named-headers.ts'
import { type Told, toldBy } from './told.ts'
import { toldByKey } from './uber-key.ts'

/** A family and what it tells. */
export interface Recognised extends Told {
  readonly family: string
}

/** One name may be anybody's. */
const ENOUGH = 2

const NO_COUNTS: readonly number[] = FAMILIES.map(() => 0)

/** Which families write a name, by their numbers. */
const writers = new Map<string, number[]>()
for (const [number, { headers }] of FAMILIES.entries()) {
  for (const { name } of headers) writers.set(name, [...(writers.get(name) ?? []), number])
}

/** Who dead records come from, and what that tells; null when nobody is recognised. */
export function recognise(record: RawRecord, keyFormat: KafkaService['keyFormat']): Recognised | null {
  const byKey = keyFormat === 'uber' ? toldByKey(record.key) : null
  if (byKey !== null) return { family: UBER, ...byKey }
  const headers = new NamedHeaders(record.headers)
  const family = familyOf(headers)
  return family === null ? null : { family: family.name, ...toldBy(family, headers) }
}

/** The family that has the most names among these headers; of several the one that stands first in the table. */
export function familyOf(headers: NamedHeaders): Family | null {
  const counts: number[] = NO_COUNTS.slice()
  for (const name of headers.names) {
    const families = writers.get(name)
    if (families === undefined) continue
    for (const number of families) counts[number] = (counts[number] ?? 0) + 1
  }
  let best: Family | null = null
  let most = ENOUGH - 1
  for (let number = 0; number < FAMILIES.length; number++) {
    const count = counts[number] ?? 0
    const family = FAMILIES[number]
    if (count <= most || !family?.needs.every((name) => headers.has(name))) continue
    best = family
    most = count
  }
  return best
}
