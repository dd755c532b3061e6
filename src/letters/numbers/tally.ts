/** Exact counts of letters by source, engine, queue, status and signature, or by some of them. */
import type { Session } from '../../store/database.ts'
import { type LetterStatus, STATUSES } from '../letter.ts'
import { type PlaceCounts, type CountFilter, queueOf, readCounts, readHoldingDrawers, type StatusCounts } from './summary.ts'
import { DrawerLabels, type PlaceLabel } from './find-drawers.ts'
import { TALLY_KEYS, type TallyKey } from './shapes.ts'

export interface TallyFilter extends CountFilter {
  readonly status?: LetterStatus | null
}

/** The letters that have the same keys; a key that is not counted by is left out, and no count is zero. */
type TallyItem = Readonly<Partial<Record<TallyKey, string | null>>> & { readonly count: number }

export interface Tally {
  readonly items: readonly TallyItem[]
  /** All letters that match the filter. */
  readonly totals: StatusCounts
}

/** Counts the letters that match, by the keys given. */
export async function tallyLetters(
  session: Session,
  filter: TallyFilter = {},
  by: readonly TallyKey[] = TALLY_KEYS,
  labels = new DrawerLabels(),
): Promise<Tally> {
  const keys = TALLY_KEYS.filter((key) => by.includes(key))
  const totals = { Pending: 0, Resolved: 0, Expired: 0 }
  const items: Counted[] = []
  const ofDrawers = keys.includes('signature') && filter.signature == null
  const accounts = ofDrawers
    ? await readLabelled(session, filter, labels)
    : await readCounts(session, filter, labels)
  for (const account of accounts) {
    for (const status of STATUSES) {
      const count = account.letters[status]
      if (count === 0 || (filter.status != null && filter.status !== status)) continue
      totals[status] += count
      items.push({ values: keys.map((key) => keyOf(key, account, status)), count })
    }
  }
  // The accounts come in the order of all keys, each of them once.
  const counted = keys.length === TALLY_KEYS.length ? items : addedUp(keys, items)
  return { items: counted.map(({ values, count }) => toItem(keys, values, count)), totals }
}

/** What a drawer holds, and where it is. */
interface Labelled extends Pick<PlaceCounts, 'letters'> {
  readonly place: Pick<PlaceLabel, 'source' | 'engine' | 'queue'>
  readonly fingerprint: string
}

/** The drawers that hold letters, in the order of all keys. Counts first: a drawer that was counted is there. */
async function readLabelled(
  session: Session,
  filter: CountFilter,
  labels: DrawerLabels,
): Promise<readonly Labelled[]> {
  const held = await readHoldingDrawers(session, filter)
  const letters = new Map(held.map((each) => [each.drawer, each.letters]))
  const drawers = await labels.of(session, [...letters.keys()])
  return drawers.map((place) => ({
    place,
    fingerprint: place.fingerprint,
    letters: letters.get(place.number) ?? { Pending: 0, Resolved: 0, Expired: 0 },
  }))
}

interface Counted {
  readonly values: readonly (string | null)[]
  readonly count: number
}

/** One for each set of values, in the order of the keys. */
function addedUp(keys: readonly TallyKey[], items: readonly Counted[]): Counted[] {
  const groups = Map.groupBy(items, ({ values }) => JSON.stringify(values))
  return [...groups.values()]
    .map((same) => ({
      values: same[0]?.values ?? [],
      count: same.reduce((sum, { count }) => sum + count, 0),
    }))
    .sort((a, b) => inOrder(keys, a.values, b.values))
}

function toItem(keys: readonly TallyKey[], values: readonly (string | null)[], count: number): TallyItem {
  const item: { [Key in TallyKey]?: string | null } & { count: number } = { count }
  for (const [place, key] of keys.entries()) item[key] = values[place] ?? null
  return item
}

function keyOf(key: TallyKey, account: PlaceCounts | Labelled, status: LetterStatus): string | null {
  switch (key) {
    case 'source':
      return account.place.source
    case 'engine':
      return account.place.engine
    case 'originalQueue':
      return queueOf(account.place)
    case 'status':
      return status
    case 'signature':
      return 'fingerprint' in account ? account.fingerprint : null
  }
}

/** Key by key: nothing before something, statuses in the order of a letter's life. */
function inOrder(
  keys: readonly TallyKey[],
  a: readonly (string | null)[],
  b: readonly (string | null)[],
): number {
  for (const [place, key] of keys.entries()) {
    const [one, other] = [a[place] ?? null, b[place] ?? null]
    if (one === other) continue
    if (one === null || other === null) return one === null ? -1 : 1
    if (key === 'status') return statusPlace(one) - statusPlace(other)
    return one < other ? -1 : 1
  }
  return 0
}

// Widened, so that any text may be looked for.
const statusPlace = (name: string): number => (STATUSES as readonly string[]).indexOf(name)
