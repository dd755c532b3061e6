/**
 * The only writer of a letter's state: rows, counts and history of all given letters, by the table of transitions. Letters are locked
 * before; what their status does not allow is an error here, because whoever asks for an act has looked.
 */
import type { Instant } from '../core/clock.ts'
import { said } from '../core/content.ts'
import { type Integer, integerList, sql, type Transaction } from '../db/database.ts'
import { type HistoryEntry, recordHistory, seriesNumber } from '../history/record.ts'
import { errorInHistory } from './capture.ts'
import {
  bytesFor,
  changing,
  drawersFor,
  fromStatus,
  type Given,
  parametersOf,
  recordChanged,
} from './change-sql.ts'
import type { DeathNote } from './death-note.ts'
import { idList } from './id-list.ts'
import { type Act, isUnconfirmed, type LetterId, letterId, type RedriveRef, STATUS } from './letter.ts'
import { type TransitionName, transitionOf, wordOf } from './transitions.ts'
import type { OfficeWork } from './work.ts'

/** A letter that an act is done to, and what history says of it. */
export interface Changed {
  readonly id: LetterId
  readonly engine: string
  /** Who acts on it, where that is not the same for all. */
  readonly actor?: string | null
  /** What the row of history has as its output. */
  readonly details?: object
  /** The run of a worker that led to it: history tells of that. */
  readonly run?: HistoryEntry | undefined
}

/** A letter whose message is on its way again. */
export interface Sent extends Changed {
  readonly sentAs: string
  readonly sentTo: string
  /** Whether what is on file as edited was edited for this: history shows it. */
  readonly isEdited?: boolean
}

/** What a letter was before. */
export interface Before {
  readonly drawer: number
  /** As it is stored. */
  readonly status: number
  readonly resolution: Act | null
  readonly confirmedAt: unknown
  /** The redrive that sent it back last. */
  readonly redrive: number | null
}

export interface Restored extends Changed {
  readonly before: Before
  /** How often the item that was taken back had been delivered. */
  readonly deliveries: number
}

export interface Refiled extends Changed {
  readonly before: Before
  readonly drawer: number
  readonly lastFailureAt: Instant
}

/** Who acts and why, the same for all. */
export interface How {
  readonly actor: string | null
  readonly notes: string | null
}

interface RedriveHow extends How {
  /** Left out: no redrive does it. */
  readonly redrive?: RedriveRef | undefined
}

/** What each act is done to, and what has to be said about it. */
interface Acts {
  readonly retry: { readonly letter: Sent; readonly how: RedriveHow }
  readonly discard: { readonly letter: Changed; readonly how: RedriveHow }
  readonly complete: { readonly letter: Changed | Sent; readonly how: How }
  readonly expire: { readonly letter: Changed; readonly how: How }
  readonly restore: { readonly letter: Restored; readonly how: How }
  readonly refile: { readonly letter: Refiled; readonly how: How }
}

const statementsOf = (act: TransitionName) => ({ changing: changing(act), drawers: drawersFor(act) })

const STATEMENTS = {
  retry: statementsOf('retry'),
  discard: statementsOf('discard'),
  complete: statementsOf('complete'),
  expire: statementsOf('expire'),
  restore: statementsOf('restore'),
  refile: statementsOf('refile'),
  reopen: statementsOf('reopen'),
} as const

/** Does an act to locked letters, with their counts and their history. */
export async function change<A extends keyof Acts>(
  work: OfficeWork,
  act: A,
  letters: readonly Acts[A]['letter'][],
  how: Acts[A]['how'],
): Promise<void> {
  if (letters.length === 0) return
  // The types of acts say which of these an act has.
  const given: readonly AnyLetter[] = letters
  const drawers = await write(work, act, await givenOf(work.tx, act, given, how), how)
  const known = given.filter(({ before }) => before !== undefined)
  for (const letter of known) if (letter.before !== undefined) count(work, act, letter.before, 1, letter)
  if (known.length > 0) return
  for (const row of drawers) count(work, act, { ...PENDING, drawer: Number(row.drawer) }, Number(row.letters))
}

type AnyLetter = Changed & Partial<Omit<Sent & Restored & Refiled, keyof Changed>>

/** What letters are that can be sent back, discarded, completed or expired. */
const PENDING = { status: STATUS.Pending, resolution: null, confirmedAt: null, redrive: null } as const

interface GivenLetters {
  readonly letters: ReadonlyMap<LetterId, Given>
  /** The series of history for each engine. */
  readonly series: ReadonlyMap<string, number>
}

async function givenOf(
  tx: Transaction,
  act: TransitionName,
  letters: readonly AnyLetter[],
  { redrive }: RedriveHow,
): Promise<GivenLetters> {
  const series = new Map<string, number>()
  const runs = new Map<string, number>()
  const given = new Map<LetterId, Given>()
  for (const { id, engine, actor, details, run, sentAs, sentTo, isEdited, deliveries, drawer } of letters) {
    if (run === undefined && !series.has(engine))
      series.set(engine, await seriesNumber(tx, engine, wordOf(act, engine), 'Succeeded'))
    given.set(id, {
      ...(actor == null ? {} : { by: said(actor) }),
      ...(details === undefined ? {} : { details: JSON.stringify(details) }),
      ...(run === undefined ? {} : await runGiven(tx, run, runs)),
      ...(sentAs === undefined ? {} : { sent_as: sentAs, sent_to: sentTo ?? null }),
      ...(redrive === undefined ? {} : { redrive: redrive.number }),
      ...(isEdited === true ? { is_edited: 1 } : {}),
      ...(deliveries === undefined ? {} : { deliveries }),
      ...(drawer === undefined ? {} : { drawer }),
    })
  }
  return { letters: given, series }
}

/** The row of a run, for the letter that it led to. */
async function runGiven(tx: Transaction, run: HistoryEntry, known: Map<string, number>): Promise<Given> {
  const key = `${run.engine} ${run.operation} ${run.status}`
  const series = known.get(key) ?? (await seriesNumber(tx, run.engine, run.operation, run.status))
  known.set(key, series)
  return {
    series,
    correlation_id: run.correlationId,
    instance_id: run.instanceId,
    recorded_at: run.createdAt.toString(),
    duration_ms: Math.round(run.durationMs),
    actor: run.actor ?? null,
    error: run.error ?? null,
    input: bytesFor(tx.dialect, run.input ?? null),
    output: bytesFor(tx.dialect, run.output ?? null),
  }
}

interface DrawerRow {
  readonly drawer: Integer
  readonly letters: Integer
}

/** Writes rows and history; an error unless all letters were as the act needs them. */
async function write(
  { tx, now }: OfficeWork,
  act: keyof typeof STATEMENTS,
  { letters, series }: GivenLetters,
  { actor, notes }: How,
): Promise<readonly DrawerRow[]> {
  const ids = idList(
    tx.dialect,
    [...letters.keys()].map((id) => ({ id })),
  )
  const given = JSON.stringify(
    Object.fromEntries([...letters].map(([id, values]) => [id.toString(), values])),
  )
  const values = [ids, given, now, said(actor), said(notes), JSON.stringify(Object.fromEntries(series))]
  const { changing, drawers } = STATEMENTS[act]
  let rows: readonly DrawerRow[]
  if (tx.dialect === 'postgres') rows = await tx.rows<DrawerRow>(changing, ...values)
  else {
    rows = await tx.rows<DrawerRow>(drawers, ids)
    const same = values.slice(2, parametersOf(changing))
    await tx.runEach(
      changing,
      [...letters].map(([id, given]) => [id, JSON.stringify(given), ...same]),
    )
    await tx.run(recordChanged, ...values)
  }
  const changed = rows.reduce((sum, row) => sum + Number(row.letters), 0)
  if (changed !== letters.size)
    throw new Error(`${act}: ${letters.size} letters were given, and ${changed} of them could be changed`)
  return rows
}

/** Counts what an act made of letters that were all the same before. */
export function count(
  { letters }: OfficeWork,
  act: TransitionName,
  before: Before,
  many: number,
  after: { readonly drawer?: number; readonly lastFailureAt?: Instant } = {},
): void {
  const { to, activity, outcome } = transitionOf(act)
  const { drawer = before.drawer, lastFailureAt = null } = after
  letters.add(before.drawer, before.status, -many)
  letters.add(drawer, to === null ? before.status : STATUS[to], many, lastFailureAt)
  const wasUnconfirmed = isUnconfirmed(before)
  if (wasUnconfirmed) letters.add(before.drawer, STATUS.unconfirmed, -many)
  if (act === 'retry' || (act === 'refile' && wasUnconfirmed)) letters.add(drawer, STATUS.unconfirmed, many)
  // A failure of a letter that nobody had sent back brings nothing back.
  if (act === 'reopen' && before.resolution !== 'retry') return
  // Told of the drawer that it was sent back from, whatever it died of this time: so retries and what came of them add up.
  if (activity !== null) letters.acted(activity, before.drawer, many)
  if (outcome !== null) letters.ended(before.redrive, outcome, many)
  // Its item was completed, and then somebody reported that it had failed.
  if (act === 'reopen' && !wasUnconfirmed) letters.ended(before.redrive, 'confirmed', -many)
}

/** Where a letter is laid in a dead queue. */
export interface Grave {
  readonly deadQueue: string
  readonly part: number
  readonly serial: number
  readonly laidAt: Instant
}

/** A letter that failed anew. */
export interface Failed {
  readonly id: LetterId
  readonly before: Before
  readonly note: DeathNote
  /** More deliveries than it had. */
  readonly deliveries: number
  /** The id that the item had when it died; null: no item did. */
  readonly diedAs: string | null
  /** Where it lies from now on; null: nowhere, 'same': where it is. */
  readonly grave: Grave | null | 'same'
  /** The instant of its history row; left out, that of its last failure. */
  readonly recordedAt?: Instant | undefined
}

/** The failure that stands on a letter goes to its attempts; one look into their primary key each. */
const keepFailures = sql('letters.keepFailures', {
  postgres: keeping('= ANY($1::bigint[])'),
  sqlite: keeping('IN (SELECT value FROM json_each($1))'),
})

function keeping(inIds: string): string {
  return `
    INSERT INTO bartleby.letter_attempts
      (letter_id, number, failed_at, superseded_at, failed_by, error_class, error_message, error_stack, reported_count)
    SELECT id, coalesce((SELECT max(number) FROM bartleby.letter_attempts WHERE letter_id = letters.id), 0) + 1,
      last_failure_at, $2, failed_by, error_class, error_message, error_stack, reported_count
    FROM bartleby.letters WHERE id ${inIds}`
}

/** Letters failed anew: they are pending, the new failure is on top and the one before among their attempts. */
export async function reopen(work: OfficeWork, failed: readonly Failed[]): Promise<void> {
  if (failed.length === 0) return
  const { tx, now } = work
  const given = new Map(failed.map((letter) => [letter.id, failureGiven(tx, letter)]))
  await Promise.all([
    tx.run(keepFailures, idList(tx.dialect, failed), now),
    write(work, 'reopen', { letters: given, series: new Map() }, { actor: null, notes: null }),
  ])
  for (const { id, before, note } of failed) {
    count(work, 'reopen', before, 1, note)
    work.letters.toFile(id, id)
  }
}

const failureGiven = ({ dialect }: Transaction, letter: Failed): Given => {
  const { note, diedAs, deliveries, grave, recordedAt } = letter
  const { record } = note
  return {
    deliveries,
    drawer: note.drawer,
    first_failure_at: note.firstFailureAt.toString(),
    last_failure_at: note.lastFailureAt.toString(),
    reason: note.reason,
    error_class: note.errorClass,
    error_message: note.errorMessage,
    error_stack: note.errorStack,
    failed_by: note.failedBy,
    reported_count: note.reportedCount ?? null,
    died_as: diedAs,
    ...placeGiven(grave),
    series: note.series,
    recorded_at: (recordedAt ?? note.lastFailureAt).toString(),
    duration_ms: Math.round(record.durationMs),
    actor: said(record.actor),
    error: errorInHistory(note),
    input: bytesFor(dialect, record.input),
    output: bytesFor(dialect, record.output),
  }
}

function placeGiven(grave: Failed['grave']): Given {
  if (grave === 'same') return { stays: 1 }
  if (grave === null) return {}
  const { deadQueue, part, serial, laidAt } = grave
  return { dead_queue: deadQueue, part, shelf: 0, serial, laid_at: laidAt.toString() }
}

/**
 * Letters by primary key, where they were sent back and wait for the outcome. The empty text keeps the stores from looking for them
 * among all unconfirmed ones, which they do as long as they do not know how many there are.
 */
const confirmThese = sql('letters.confirm', {
  postgres: confirming('= ANY($1::bigint[])'),
  sqlite: confirming('IN (SELECT value FROM json_each($1))'),
})

function confirming(inIds: string): string {
  return `UPDATE bartleby.letters SET confirmed_at = $2, version = version + 1
          WHERE id ${inIds} AND ${fromStatus('confirm')} AND resolution || '' = 'retry' AND confirmed_at IS NULL
          RETURNING id, drawer, version, redrive, engine, coalesce(correlation_id, source_id) AS correlation_id, instance_id`
}

interface ConfirmedRow {
  readonly id: Integer
  readonly drawer: Integer
  readonly version: Integer
  readonly redrive: Integer | null
  readonly engine: string
  readonly correlation_id: string
  readonly instance_id: string | null
}

/**
 * What was sent back is done, as far as it was letters that were; gives how many. `runs` are the history rows of the runs that did it, by
 * letter: each doubles as the row of the confirmation. Without a run, the confirmation has a row of its own.
 */
export async function confirm(
  work: OfficeWork,
  ids: readonly LetterId[],
  runs: ReadonlyMap<LetterId, HistoryEntry>,
): Promise<number> {
  const { tx, now } = work
  const list = integerList(tx.dialect, ids.map(Number))
  const confirmed = await tx.rows<ConfirmedRow>(confirmThese, list, now)
  for (const { drawer, redrive } of confirmed) {
    const before = {
      ...SENT_BACK,
      drawer: Number(drawer),
      redrive: redrive === null ? null : Number(redrive),
    }
    count(work, 'confirm', before, 1)
  }
  const letters = new Map(confirmed.map((row) => [letterId(row.id), row]))
  await recordHistory(
    tx,
    ids.flatMap((id) => confirmationOf(letters.get(id), runs.get(id), now)),
  )
  return letters.size
}

const SENT_BACK = { status: STATUS.Resolved, resolution: 'retry', confirmedAt: null } as const

function confirmationOf(
  letter: ConfirmedRow | undefined,
  run: HistoryEntry | undefined,
  now: Instant,
): readonly HistoryEntry[] {
  if (letter === undefined) return run === undefined ? [] : [run]
  const own = {
    engine: letter.engine,
    operation: wordOf('confirm', letter.engine),
    status: 'Succeeded',
    instanceId: letter.instance_id,
    correlationId: letter.correlation_id,
    createdAt: now,
    durationMs: 0,
  } as const
  return [{ ...(run ?? own), letterId: letterId(letter.id), letterVersion: Number(letter.version) }]
}
