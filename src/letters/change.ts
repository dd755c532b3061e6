/**
 * The only writer of a letter's state: rows, counts and history of all given letters, by the table of transitions. Letters are locked
 * before; what their status does not allow is an error here, because whoever asks for an act has looked. Only a capture makes a
 * letter, and goes another way: `bury.ts`.
 */
import type { Instant } from '../core/clock.ts'
import { said } from '../core/content.ts'
import type { Integer, Transaction } from '../db/database.ts'
import { type HistoryEntry, seriesNumber } from '../history/record.ts'
import type { DeathNote } from './capture.ts'
import {
  bytesFor,
  CHANGES,
  type Given,
  keepFailures,
  keepFilingOut,
  REMOVALS,
  recordChanged,
  removeAttempts,
  removeTexts,
} from './change-sql.ts'
import { type Act, isUnconfirmed, type LetterId, type RedriveRef, STATUS } from './letter.ts'
import { errorInHistory, type TransitionName, transitionOf, wordOf } from './transitions.ts'
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

interface Known extends Changed {
  readonly before: Before
}

interface Restored extends Known {
  /** How often the item that was taken back had been delivered. */
  readonly deliveries: number
}

interface Refiled extends Known {
  readonly drawer: number
  readonly lastFailureAt: Instant
}

/** Where a letter is laid in a dead queue. */
export interface Grave {
  readonly deadQueue: string
  readonly part: number
  readonly serial: number
  readonly laidAt: Instant
}

/** A letter that failed anew: the new failure is on top, and the one before among its attempts. */
export interface Failed extends Known {
  readonly note: DeathNote
  /** More deliveries than it had. */
  readonly deliveries: number
  /** The id that the item had when it died; null: no item did. */
  readonly diedAs: string | null
  /** Where it lies from now on; null: nowhere, 'same': where it is. */
  readonly grave: Grave | null | 'same'
}

/** Who acts and why, the same for all. */
export interface How {
  readonly actor: string | null
  readonly notes: string | null
}

/** What nobody decided, or whose history names who did. */
export const NOBODY: How = { actor: null, notes: null }

interface RedriveHow extends How {
  /** Left out: no redrive does it. */
  readonly redrive?: RedriveRef | undefined
}

/** What each act is done to, and what has to be said about it. */
interface Acts {
  readonly reopen: { readonly letter: Failed; readonly how: How }
  readonly intend: { readonly letter: Changed; readonly how: RedriveHow }
  readonly forgo: { readonly letter: Changed; readonly how: How }
  readonly retry: { readonly letter: Sent; readonly how: RedriveHow }
  readonly discard: { readonly letter: Changed; readonly how: RedriveHow }
  readonly complete: { readonly letter: Changed | Sent; readonly how: How }
  readonly expire: { readonly letter: Changed; readonly how: How }
  readonly restore: { readonly letter: Restored; readonly how: How }
  readonly confirm: { readonly letter: Known; readonly how: How }
  readonly refile: { readonly letter: Refiled; readonly how: How }
  readonly erase: { readonly letter: Changed; readonly how: How }
  readonly remove: { readonly letter: Changed; readonly how: How }
}

type AnyLetter = Changed & Partial<Omit<Sent & Restored & Refiled & Failed, keyof Changed>>

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
  const groups = isRemoval(act) ? await takeOut(work, act, given) : await write(work, act, given, how)
  const changed = groups.reduce((sum, group) => sum + Number(group.letters), 0)
  if (changed !== letters.length)
    throw new Error(`${act}: ${letters.length} letters were given, and ${changed} of them could be changed`)
  if (given[0]?.before === undefined) {
    for (const group of groups) count(work, act, beforeOf(group), Number(group.letters))
    return
  }
  for (const { id, before, note, drawer, lastFailureAt } of given) {
    if (before !== undefined) count(work, act, before, 1, note ?? { drawer, lastFailureAt })
    // What it can be found by is new.
    if (note !== undefined) work.letters.toFile(id, id)
  }
}

const isRemoval = (act: keyof Acts): act is keyof typeof REMOVALS => act in REMOVALS

/** Letters that were the same before. */
interface Group {
  readonly drawer: Integer
  readonly letters: Integer
  /** Left out: pending. */
  readonly status?: Integer
  /** null when nobody waits for what comes of it. */
  readonly resolution?: Act | null
}

const beforeOf = ({ drawer, status = STATUS.Pending, resolution = null }: Group): Before => ({
  ...{ drawer: Number(drawer), status: Number(status), resolution, confirmedAt: null, redrive: null },
})

/** Writes rows and history. A failure that stood on a letter goes to its attempts when another takes its place. */
async function write(
  { tx, now }: OfficeWork,
  act: keyof typeof CHANGES,
  letters: readonly AnyLetter[],
  how: RedriveHow,
): Promise<readonly Group[]> {
  const { changing, places, drawers } = CHANGES[act]
  const { sets, word } = transitionOf(act)
  const { given, series } = await givenOf(tx, act, letters, how)
  const ids = [...given.keys()]
  const all = JSON.stringify(Object.fromEntries(given))
  const values = [ids, all, now, said(how.actor), said(how.notes), series]
  // Before it is replaced, in one flight with that.
  const kept = sets.includes('failure') ? tx.run(keepFailures, ids, now) : null
  if (tx.dialect === 'postgres') {
    const changed = tx.rows<Group>(changing, ...values.slice(0, places.postgres))
    return (await Promise.all([changed, kept]))[0]
  }
  await kept
  const groups = await tx.rows<Group>(drawers, ids)
  const same = values.slice(2)
  const each = [...given].map(([id, own]) => [id, JSON.stringify(own), ...same].slice(0, places.sqlite))
  await tx.runEach(changing, each)
  if (word !== null) await tx.run(recordChanged, ...values)
  return groups
}

/** Takes rows out for good, with what is on file about them: earlier failures and the texts that they are found by. */
async function takeOut(
  { tx }: OfficeWork,
  act: keyof typeof REMOVALS,
  letters: readonly AnyLetter[],
): Promise<readonly Group[]> {
  const ids = letters.map(({ id }) => id)
  const filing = tx.dialect === 'postgres' ? [tx.rows(keepFilingOut)] : []
  const [rows] = await Promise.all([
    tx.rows<Group>(REMOVALS[act], ids),
    ...filing,
    tx.run(removeTexts, ids),
    tx.run(removeAttempts, ids),
  ])
  return rows
}

/** What goes with each letter, and the series of history for each engine. */
async function givenOf(
  tx: Transaction,
  act: keyof Acts,
  letters: readonly AnyLetter[],
  { redrive }: RedriveHow,
): Promise<{ readonly given: ReadonlyMap<LetterId, Given>; readonly series: string }> {
  const series = new Map<string, number>()
  const runs = new Map<string, number>()
  const given = new Map<LetterId, Given>()
  for (const letter of letters) {
    const { id, engine, actor, details, run, note, sentAs, sentTo, isEdited, deliveries, drawer } = letter
    const word = wordOf(act, engine)
    if (run === undefined && note === undefined && word !== null && !series.has(engine))
      series.set(engine, await seriesNumber(tx, engine, word, 'Succeeded'))
    given.set(id, {
      ...(actor == null ? {} : { by: said(actor) }),
      ...(details === undefined ? {} : { details: JSON.stringify(details) }),
      ...(run === undefined ? {} : await runGiven(tx, run, runs)),
      ...(note === undefined ? {} : failureGiven(tx, act, note, letter)),
      ...(sentAs === undefined ? {} : { sent_as: sentAs, sent_to: sentTo ?? null }),
      ...(redrive === undefined ? {} : { redrive: redrive.number }),
      ...(isEdited === true ? { is_edited: 1 } : {}),
      ...(deliveries === undefined ? {} : { deliveries }),
      ...(drawer === undefined ? {} : { drawer }),
    })
  }
  return { given, series: JSON.stringify(Object.fromEntries(series)) }
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

/** A new failure, and where its letter lies from now on. Its row of history is of the moment of the act. */
function failureGiven(
  { dialect }: Transaction,
  act: TransitionName,
  note: DeathNote,
  { diedAs = null, grave = 'same' }: Partial<Failed>,
): Given {
  const { record } = note
  return {
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
    duration_ms: Math.round(record.durationMs),
    actor: said(record.actor),
    error: errorInHistory(act, note),
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

/** Counts what an act made of letters that were all the same before. */
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
  // A failure of a letter that nobody had sent back brings nothing back.
  if (act === 'reopen' && before.resolution !== 'retry') return
  // Told of the drawer that it was sent back from, whatever it died of this time: so retries and what came of them add up.
  if (activity !== null) letters.acted(activity, before.drawer, many)
  if (outcome !== null) letters.ended(before.redrive, outcome, many)
  // Its item was completed, and then somebody reported that it had failed.
  if (act === 'reopen' && !wasUnconfirmed) letters.ended(before.redrive, 'confirmed', -many)
}
