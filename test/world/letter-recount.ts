/**
 * Activity, counted again from the letters themselves: what became of each between two looks at all of them. For tests that hold
 * it against what the office tells.
 */
import type { Instant } from '../../src/core/clock.ts'
import { STATUS } from '../../src/letters/letter.ts'
import type { Activity } from '../../src/letters/numbers/activity.ts'
import { ACTIVITY_NAMES, type ActivityName } from '../../src/letters/numbers/shapes.ts'
import type { CountFilter } from '../../src/letters/numbers/summary.ts'
import { type Integer, sql } from '../../src/store/database.ts'
import type { LetterStore } from './letter-store.ts'

const readAll = sql(
  'test.recount',
  `SELECT letters.id, status, resolution, confirmed_at, source, letters.engine, queue, fingerprint
   FROM bartleby.letters JOIN bartleby.drawers ON drawers.id = drawer JOIN bartleby.signatures ON signatures.id = signature`,
  { bigints: true },
)

interface Row {
  readonly id: Integer
  readonly status: Integer
  readonly resolution: string | null
  readonly confirmed_at: Integer | null
  readonly source: string
  readonly engine: string
  readonly queue: string
  readonly fingerprint: string
}

interface Happened {
  readonly activity: ActivityName
  readonly at: Instant
  /** As it was filed before; when it is new, as it is. */
  readonly letter: Row
}

const ENDS: Readonly<Record<string, ActivityName>> = {
  retry: 'retried',
  discard: 'discarded',
  expire: 'expired',
}

const isUnconfirmed = ({ resolution, confirmed_at }: Row): boolean =>
  resolution === 'retry' && confirmed_at === null

export class Recount {
  readonly #store: LetterStore
  readonly #happened: Happened[] = []
  #known = new Map<string, Row>()

  constructor(store: LetterStore) {
    this.#store = store
  }

  /** Looks at all letters; whatever is new happened now. Restored letters are not told of. */
  async look(isRestore = false): Promise<void> {
    const rows = await this.#store.db.session('test', (session) => session.rows<Row>(readAll))
    const at = this.#store.clock.now()
    for (const row of rows) {
      const before = this.#known.get(String(row.id))
      const activity = isRestore && before !== undefined ? null : difference(before, row)
      if (activity !== null) this.#happened.push({ activity, at, letter: before ?? row })
    }
    this.#known = new Map(rows.map((row) => [String(row.id), row]))
  }

  get unconfirmed(): number {
    return [...this.#known.values()].filter(isUnconfirmed).length
  }

  /** What the series of an activity must be. */
  series({ from, bucketSeconds, series }: Activity, filter: CountFilter): Record<string, number[]> {
    const counted = Object.fromEntries(
      ACTIVITY_NAMES.map((name) => [name, Array.from({ length: series[name].length }, () => 0)]),
    )
    for (const { activity, at, letter } of this.#happened) {
      const bucket = Math.floor(Number(at - from) / (bucketSeconds * 1_000_000))
      const numbers = counted[activity]
      if (numbers === undefined || bucket < 0 || !matches(letter, filter)) continue
      numbers[bucket] = (numbers[bucket] ?? 0) + 1
    }
    return counted
  }

  /** How often it ever happened to letters of a signature. */
  ever(activity: ActivityName, signature: string): number {
    return this.#happened.filter(
      (each) => each.activity === activity && each.letter.fingerprint === signature,
    ).length
  }
}

function difference(before: Row | undefined, after: Row): ActivityName | null {
  if (before === undefined) return 'arrived'
  if (before.confirmed_at === null && after.confirmed_at !== null) return 'confirmed'
  if (Number(before.status) === STATUS.Pending) return ENDS[after.resolution ?? ''] ?? null
  if (before.resolution === 'retry' && Number(after.status) === STATUS.Pending) return 'returned'
  return null
}

const matches = (letter: Row, { source, engine, originalQueue, signature }: CountFilter): boolean =>
  (source == null || letter.source === source) &&
  (engine == null || letter.engine === engine) &&
  (originalQueue == null || letter.queue === originalQueue) &&
  (signature == null || letter.fingerprint === signature)
