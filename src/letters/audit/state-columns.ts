/** Columns of end, retry and position against the status, by the rules of the table of transitions. */

import { POSITION_COLUMNS } from '../in-dead-queue/read.ts'
import { kindOf, type SourceName } from '../kinds.ts'
import { STATUS, STATUSES } from '../letter.ts'
import { type StateColumn, TRANSITIONS, type Transition } from '../transitions.ts'
import type { Finding, FoundRow } from './invariant.ts'

interface Rule {
  readonly column: string
  /** SQL: which letters break it. */
  readonly fault: string
}

const ENDS = ['retry', 'discard', 'complete', 'expire'] as const
/** Filled for every letter, by acts that fill them at all. */
const ALWAYS: readonly StateColumn[] = ['resolved_at', 'expired_at', 'sent_as', 'sent_to']

const NEEDED: readonly (keyof typeof POSITION_COLUMNS)[] = ['shelf', 'serial', 'laid_at']

const filled = (column: string): string => `${column} IS NOT NULL`

function* rules(): Iterable<Rule> {
  const toPending: readonly Transition[] = Object.values<Transition>(TRANSITIONS).filter(
    ({ to }) => to === 'Pending',
  )
  const [first, ...others] = toPending
  for (const column of first?.resets ?? [])
    if (others.every(({ resets }) => resets.includes(column)))
      yield { column, fault: `status = ${STATUS.Pending} AND ${filled(column)}` }
  yield { column: 'resolution', fault: `status <> ${STATUS.Pending} AND resolution IS NULL` }
  // Completed in a dead queue means not sent; only an outbox, which has none, can complete a message that was.
  for (const column of ['sent_as', 'sent_to'])
    yield { column, fault: `resolution = 'complete' AND dead_queue IS NOT NULL AND ${filled(column)}` }
  for (const act of ENDS) yield* rulesOf(act, TRANSITIONS[act])
  for (const [column, empty] of Object.entries(POSITION_COLUMNS)) {
    const isFilled = empty === 'NULL' ? filled(column) : `${column} <> ${empty}`
    if (column !== 'part') yield { column, fault: `part IS NULL AND ${isFilled}` }
  }
  for (const column of NEEDED) yield { column, fault: `part IS NOT NULL AND ${column} IS NULL` }
}

function* rulesOf(act: (typeof ENDS)[number], { to, sets, resets }: Transition): Iterable<Rule> {
  const is = `resolution = '${act}'`
  if (to !== null && to !== 'removed') yield { column: 'status', fault: `${is} AND status <> ${STATUS[to]}` }
  // A confirmation may follow a retry.
  const later = act === 'retry' ? TRANSITIONS.confirm.sets : []
  for (const column of resets)
    if (column !== 'position' && !later.some((set) => set === column))
      yield { column, fault: `${is} AND ${filled(column)}` }
  for (const column of sets)
    if (ALWAYS.includes(column) && (act !== 'complete' || column === 'resolved_at'))
      yield { column, fault: `${is} AND ${column} IS NULL` }
}

/** SQL: names of columns that do not fit the status, each followed by a space. */
export const oddColumns = [...rules()]
  .map(({ column, fault }) => `CASE WHEN ${fault} THEN '${column} ' ELSE '' END`)
  .join(' || ')

export function* oddState(
  { key, engine, sourceId, status, resolution, odd }: FoundRow,
  source: SourceName | undefined,
): Iterable<Finding> {
  if (odd === '') return
  const columns = new Set(`${odd}`.trim().split(' '))
  // Leased while it is sent over a network, without a position.
  if (source !== undefined && kindOf(source).sendsOutside === true) columns.delete('leased')
  if (columns.size === 0) return
  const name = STATUSES[Number(status)] ?? status
  const end = resolution === null ? '' : ` by ${resolution}`
  const listed = [...columns].join(', ')
  yield {
    what: `letter ${key} is ${name}${end}, which its ${listed} does not fit`,
    row: { letter: key, engine, sourceId, status: name, columns: listed },
  }
}
