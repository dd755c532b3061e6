/**
 * The only writer of a letter's state: rows, counts and history of locked letters, by the table of transitions. A status that forbids
 * the act is an error here, because callers have looked. Captures go through `bury.ts`.
 */
import type { Instant } from '../core/clock.ts'
import { storableText } from '../core/content.ts'
import { type HistoryEntry, operationKindNumber } from '../history/record.ts'
import type { Integer, Transaction } from '../store/database.ts'
import { rowsGiven, runGiven } from '../store/idioms.ts'
import { missingValue } from '../store/missing-value.ts'
import { type DeathNote, errorInHistory, noteRow } from './capture.ts'
import {
  CHANGES,
  type Given,
  keepFailures,
  keepFilingOut,
  REMOVALS,
  removeAttempts,
  removeTexts,
} from './change-sql.ts'
import { type Act, isUnconfirmed, type LetterId, type RedriveRef, STATUS } from './letter.ts'
import { type TransitionName, transitionOf, wordOf } from './transitions.ts'
import type { OfficeWork } from './work.ts'

export interface Changed {
  readonly id: LetterId
  readonly engine: string
  readonly actor?: string | null
  readonly details?: object
}

/** History shows the worker's run that led to the act, if any. */
interface Ran extends Changed {
  readonly run?: HistoryEntry | undefined
}

export interface Sent extends Changed {
  readonly sentAs: string
  readonly sentTo: string
  /** Whether the stored edit was made for this send: history shows it. */
  readonly isEdited?: boolean
}

export interface Before {
  readonly drawer: number
  /** As stored. */
  readonly status: number
  readonly resolution: Act | null
  readonly confirmedAt: unknown
  readonly redrive: number | null
}

interface Known extends Changed {
  readonly before: Before
}

interface Restored extends Known {
  readonly deliveries: number
}

interface Refiled extends Known {
  readonly drawer: number
  readonly lastFailureAt: Instant
}

/** The position at which a letter enters a dead queue. */
export interface NewPosition {
  readonly deadQueue: string
  readonly part: number
  readonly serial: number
  readonly laidAt: Instant
}

/** A letter with a new failure; the one before joins its attempts. */
export interface Failed extends Known {
  readonly note: DeathNote
  /** Added to its count. */
  readonly deliveries: number
  /** null: no item died. */
  readonly diedAs: string | null
  /** null: in no dead queue. */
  readonly position: NewPosition | null | 'same'
}

export interface How {
  readonly actor: string | null
  readonly notes: string | null
}

/** No actor, or history names it. */
export const NOBODY: How = { actor: null, notes: null }

interface RedriveHow extends How {
  readonly redrive?: RedriveRef | undefined
}

interface Acts {
  readonly reopen: { readonly letter: Failed; readonly how: How }
  readonly intend: { readonly letter: Changed; readonly how: RedriveHow }
  readonly forgo: { readonly letter: Changed; readonly how: How }
  readonly retry: { readonly letter: Sent; readonly how: RedriveHow }
  readonly discard: { readonly letter: Ran; readonly how: RedriveHow }
  readonly complete: { readonly letter: Ran | Sent; readonly how: How }
  readonly expire: { readonly letter: Changed; readonly how: How }
  readonly restore: { readonly letter: Restored; readonly how: How }
  readonly confirm: { readonly letter: Known & Ran; readonly how: How }
  readonly refile: { readonly letter: Refiled; readonly how: How }
  readonly erase: { readonly letter: Changed; readonly how: How }
  readonly remove: { readonly letter: Changed; readonly how: How }
}

type AnyLetter = Changed & Partial<Omit<Ran & Sent & Restored & Refiled & Failed, keyof Changed>>

/** Performs an act on locked letters, with counts and history. */
export async function change<A extends keyof Acts>(
  work: OfficeWork,
  act: A,
  letters: readonly Acts[A]['letter'][],
  how: Acts[A]['how'],
): Promise<void> {
  if (letters.length === 0) return
  // The types of acts say which of these an act has.
  const given: readonly AnyLetter[] = letters
  const groups = isRemoval(act) ? await takeOut(work, act, given) : await write(work, act, given, how)
  const changed = groups.reduce((sum, group) => sum + Number(group.letters), 0)
  if (changed !== letters.length) throw notAllChanged(act, letters.length, changed)
  if (given[0]?.before === undefined) {
    for (const group of groups) count(work, act, beforeOf(group), Number(group.letters))
    return
  }
  for (const { id, before, note, drawer, lastFailureAt } of given) {
    if (before !== undefined) count(work, act, before, 1, note ?? { drawer, lastFailureAt })
    // Its searchable texts are new.
    if (note !== undefined) work.letters.toFile(id, id)
  }
}

const notAllChanged = (act: keyof Acts, letters: number, changed: number | 'fewer'): Error =>
  new Error(`${act}: ${letters} letters were given, and ${changed} of them could be changed`)

const isRemoval = (act: keyof Acts): act is keyof typeof REMOVALS => act in REMOVALS

/** Letters that were alike before. */
interface Group {
  readonly drawer: Integer
  readonly letters: Integer
  /** Left out: pending. */
  readonly status?: Integer
  /** null: not awaiting confirmation. */
  readonly resolution?: Act | null
}

const beforeOf = ({ drawer, status = STATUS.Pending, resolution = null }: Group): Before => ({
  ...{ drawer: Number(drawer), status: Number(status), resolution, confirmedAt: null, redrive: null },
})

/** Writes rows and history; a replaced failure joins the attempts. */
async function write(
  { tx, now }: OfficeWork,
  act: keyof typeof CHANGES,
  letters: readonly AnyLetter[],
  { actor, notes, redrive }: RedriveHow,
): Promise<readonly Group[]> {
  const given = await givenOf(tx, act, letters)
  const same = {
    at: now,
    actor: storableText(actor),
    notes: storableText(notes),
    redrive: redrive?.number ?? null,
  }
  const ids = letters.map(({ id }) => id)
  const { postgres, sqlite } = CHANGES[act]
  const writeAll = async (): Promise<readonly Group[]> => {
    const values = postgres.needs.map((name) => same[name])
    if (tx.dialect === 'postgres') {
      return rowsGiven<Group>(tx, postgres.statement, given, ...values).catch((error: unknown) => {
        // Not as its cause: the database error shows the whole row.
        throw missingValue(error) === 'letters.status' ? notAllChanged(act, letters.length, 'fewer') : error
      })
    }
    const rows = await tx.rows<Pick<Group, 'drawer'>>(sqlite.drawers, ids)
    for (const { statement, needs } of sqlite.writings)
      await runGiven(tx, statement, given, ...needs.map((name) => same[name]))
    const drawers = Map.groupBy(rows, ({ drawer }) => drawer)
    return [...drawers].map(([drawer, those]) => ({ drawer, letters: those.length }))
  }
  if (!transitionOf(act).sets.includes('failure')) return writeAll()
  // Kept before it is replaced, in the same round trip.
  return (await Promise.all([tx.run(keepFailures, ids, now), writeAll()]))[1]
}

/** Deletes letters with their attempts and searchable texts. */
async function takeOut(
  { tx }: OfficeWork,
  act: keyof typeof REMOVALS,
  letters: readonly AnyLetter[],
): Promise<readonly Group[]> {
  const ids = letters.map(({ id }) => id)
  const [rows] = await Promise.all([
    tx.rows<Omit<Group, 'letters'>>(REMOVALS[act], ids),
    tx.rows(keepFilingOut),
    tx.run(removeTexts, ids),
    tx.run(removeAttempts, ids),
  ])
  const { from } = transitionOf(act)
  return rows
    .filter(({ status }) => from.some((name) => STATUS[name] === Number(status)))
    .map((row) => ({ ...row, letters: 1 }))
}

async function givenOf(tx: Transaction, act: keyof Acts, letters: readonly AnyLetter[]): Promise<Given[]> {
  const series = await seriesOf(tx, act, letters)
  const given: Given[] = []
  for (const letter of letters) {
    const { id, engine, actor, details, run, note, sentAs, sentTo, isEdited, deliveries, drawer } = letter
    given.push({
      id,
      actor: actor == null ? null : storableText(actor),
      details: details && JSON.stringify(details),
      series: series.get(run ?? engine),
      sent_as: sentAs,
      sent_to: sentTo,
      is_edited: isEdited === true ? 1 : null,
      deliveries,
      drawer,
      ...(run && ranGiven(run)),
      ...(note && failureGiven(note, letter)),
    })
  }
  return given
}

/** Operation kinds by engine, and by run. */
async function seriesOf(
  tx: Transaction,
  act: keyof Acts,
  letters: readonly AnyLetter[],
): Promise<ReadonlyMap<string | HistoryEntry, number>> {
  const series = new Map<string | HistoryEntry, number>()
  const known = new Map<string, number>()
  for (const { engine, run, note } of letters) {
    const about = run ?? engine
    const operation = run === undefined ? wordOf(act, engine) : run.operation
    if (note !== undefined || operation === null || series.has(about)) continue
    const status = run?.status ?? 'Succeeded'
    const key = `${run?.engine ?? engine} ${operation} ${status}`
    const number = known.get(key) ?? (await operationKindNumber(tx, run?.engine ?? engine, operation, status))
    known.set(key, number)
    series.set(about, number)
  }
  return series
}

const ranGiven = (run: HistoryEntry): Given => ({
  run_at: run.createdAt,
  run_correlation: run.correlationId,
  run_instance: run.instanceId,
  run_actor: run.actor ?? null,
  duration_ms: Math.round(run.durationMs),
  error: run.error ?? null,
  input: run.input ?? null,
  output: run.output ?? null,
})

/** A new failure and the letter's position; its history row is dated by the act. */
const failureGiven = (note: DeathNote, { diedAs = null, position = 'same' }: Partial<Failed>): Given => ({
  ...noteRow(note),
  actor: null,
  run_actor: storableText(note.record.actor),
  error: errorInHistory(note),
  died_as: diedAs,
  ...positionGiven(position),
})

function positionGiven(position: Failed['position']): Given {
  if (position === 'same') return { stays: 1 }
  if (position === null) return {}
  const { deadQueue, part, serial, laidAt } = position
  return { dead_queue: deadQueue, part, shelf: 0, serial, laid_at: laidAt }
}

/** Counts an act on letters that were alike before. */
function count(
  { letters }: OfficeWork,
  act: TransitionName,
  before: Before,
  many: number,
  after: { readonly drawer?: number | undefined; readonly lastFailureAt?: Instant | undefined } = {},
): void {
  const { to, activity, outcome } = transitionOf(act)
  const { drawer = before.drawer, lastFailureAt = null } = after
  letters.add(before.drawer, before.status, -many)
  letters.add(drawer, to === null ? before.status : STATUS[to], many, lastFailureAt)
  const wasUnconfirmed = isUnconfirmed(before)
  if (wasUnconfirmed) letters.add(before.drawer, STATUS.unconfirmed, -many)
  if (act === 'retry' || (act === 'refile' && wasUnconfirmed)) letters.add(drawer, STATUS.unconfirmed, many)
  // A letter that nobody sent back cannot return.
  if (act === 'reopen' && before.resolution !== 'retry') return
  // Under the drawer that it was sent from, so that retries and their outcomes add up.
  if (activity !== undefined) letters.acted(activity, before.drawer, many)
  if (outcome !== undefined) letters.ended(before.redrive, outcome, many)
  // Completed first, then reported as failed.
  if (act === 'reopen' && !wasUnconfirmed) letters.ended(before.redrive, 'confirmed', -many)
}
