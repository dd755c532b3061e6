/**
 * Changes that are made only by those who know what they change. Whoever changes a producer, a channel or a consumer says when
 * it was last modified, to the second and as text; a change moves that by a second at least, so that of two changes which say
 * the same exactly one is made.
 */
import { type Instant, later } from '../../core/clock.ts'
import { formatHttpDate } from '../../core/timestamp.ts'
import { Refused } from '../refusal.ts'

interface Modified {
  readonly updatedAt: Instant
}

const SECOND_US = 1_000_000n

/** When something is modified that was last modified at `updatedAt`. */
export const nextUpdate = (now: Instant, { updatedAt }: Modified): Instant => {
  const earliest = later(updatedAt, SECOND_US)
  return now > earliest ? now : earliest
}

/** Refuses to change what the caller does not know. An empty condition is none. */
export function checkCondition({ updatedAt }: Modified, ifUnmodifiedSince: string | null): void {
  if (ifUnmodifiedSince === null || ifUnmodifiedSince === '') throw new Refused('condition_missing')
  if (ifUnmodifiedSince !== formatHttpDate(updatedAt)) throw new Refused('condition_failed')
}

/** How one kind of resource is put. Each step is one statement that does nothing when another was faster. */
export interface PutSteps<T extends Modified> {
  read(): Promise<T | null>
  /** Null when it exists by now. */
  create(): Promise<T | null>
  /** Null when it is not any more what was read. */
  change(current: T): Promise<T | null>
}

/** Creates it, or changes it if the condition holds. */
export async function putConditionally<T extends Modified>(
  { read, create, change }: PutSteps<T>,
  ifUnmodifiedSince: string | null,
): Promise<T> {
  const known = await read()
  const created = known === null ? await create() : null
  if (created !== null) return created
  const current = known ?? (await read())
  // Created by another and deleted again, all since we first looked.
  if (current === null) throw new Refused('condition_failed')
  checkCondition(current, ifUnmodifiedSince)
  const changed = await change(current)
  if (changed === null) throw new Refused('condition_failed')
  return changed
}

/** More often than that nobody changes the same thing while we look. */
const MOST_LOOKS = 10

/** Creates or changes it, whatever it is by now. */
export async function putAnyway<T extends Modified>({ read, create, change }: PutSteps<T>): Promise<T> {
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const current = await read()
    const put = current === null ? await create() : await change(current)
    if (put !== null) return put
  }
  throw new Error('it is changed by others faster than it can be put')
}
