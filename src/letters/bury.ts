/**
 * The only death: dead items become letters here, or reopen the letter that they were sent back from, with counts and history, in the
 * transaction that takes them from their source. Sources say only how they give up their rows.
 */
import type { Instant } from '../core/clock.ts'
import { storableError } from '../core/content.ts'
import { signatureOf } from '../core/signature.ts'
import type { HistoryStatus } from '../history/shapes.ts'
import type { Statement, Transaction, Value } from '../store/database.ts'
import {
  allocateLetterIds,
  type CapturedRow,
  type CaptureStatement,
  captureOne,
  capturingBy,
  countCaptured,
  type DeadItem,
  type DeathNote,
  fileAlike,
} from './capture.ts'
import { change, type Failed, type NewPosition, NOBODY } from './change.ts'
import { type Case, readCases } from './confirm.ts'
import type { SourceName } from './kinds.ts'
import { type DeathReason, type LetterId, letterId } from './letter.ts'
import { type CaseRow, lockLettersOf, reopenedIn } from './locked.ts'
import type { Registers } from './registers.ts'
import type { OfficeWork } from './work.ts'

/** Why and where something died. Share one object among equal deaths: it is worked out once. */
export interface Cause {
  readonly source: SourceName
  readonly engine: string
  readonly queue: string | null
  readonly reason: DeathReason
  readonly errorClass: string
  readonly errorMessage: string
  readonly errorStack: string | null
  readonly failedBy: string | null
  /** Its history row, with the operation for a new letter and for a reopened one. */
  readonly record: {
    readonly captured: string
    readonly reopened: string
    readonly status: HistoryStatus
    readonly durationMs: number
    readonly actor: string | null
    /** Leaves out the error, which may hold values of headers. */
    readonly isSilent?: boolean
    readonly input: Uint8Array | null
    readonly output: Uint8Array | null
  }
}

export const PLAIN_RECORD: Cause['record'] = {
  captured: 'capture',
  reopened: 'reopen',
  status: 'Succeeded',
  durationMs: 0,
  actor: null,
  input: null,
  output: null,
}

/** One dead item. Deaths with nothing but a cause share one note. */
export interface Death {
  readonly cause: Cause
  /** Its letter is reopened if there is one; null: no case was opened. */
  readonly caseId: LetterId | null
  readonly sourceId: string
  /** The id of the dead item, for a reopened letter; null if unknown. */
  readonly diedAs: string | null
  readonly attempts: number
  readonly position: NewPosition | null
  /** Left out: the source id. */
  readonly instanceId?: string
  /** Left out: that of its case, else its source id if it has an instance. */
  readonly correlationId?: string
  /** For sources with an order of their own. Left out: now, after the letters of its instance. */
  readonly capturedAt?: Instant
  /** Left out: now. */
  readonly lastFailureAt?: Instant
  /** Left out: that of its case, or the last one. */
  readonly firstFailureAt?: Instant
  /** Deliveries named by its report; left out: not reported. */
  readonly reportedCount?: number
  /** Replaces the output of its cause. */
  readonly output?: Uint8Array
}

export interface Taking<D extends Death> {
  /** Letters locked before the deaths were known. Left out: `bury` locks those of the cases. */
  readonly letters?: ReadonlyMap<LetterId, CaseRow>
  /** Moves reopened letters to the drawer of their newest death. */
  readonly refiles?: boolean
  /** Locks rows in the order of their ids, by one statement; returns those that still die. Left out: all. */
  hold?(deaths: readonly D[]): Promise<readonly D[]>
  /** Ends the rows of items whose letters reopen; may update `letters`. */
  end(deaths: readonly D[], letters: Map<LetterId, CaseRow>): Promise<void>
  /** PostgreSQL: takes all at once. `notes` are note numbers. */
  all(
    deaths: readonly D[],
    notes: readonly number[],
  ): { readonly statement: CaptureStatement; readonly values: readonly Value[] }
  /** SQLite: takes one; null if it shall have no letter. */
  each(death: D, id: LetterId): Promise<DeadItem | null>
  /** SQLite: takes deaths that share a note at once. Left out: one by one. */
  alike?(deaths: readonly D[], first: LetterId): TakenAlike
}

/** A statement of `captureAlike` with its own values; `remove` deletes the rows and returns how many there were. */
interface TakenAlike {
  readonly statement: Statement
  readonly values: readonly Value[]
  remove(): Promise<number>
}

interface Buried<D> {
  /** Still dying once their rows were locked. */
  readonly deaths: readonly D[]
  /** Rows that the source gave up for new letters. */
  readonly taken: number
  readonly captured: number
  readonly reopened: number
  readonly letters: ReadonlyMap<D, LetterId>
  notes(): ReadonlyMap<D, DeathNote>
  readonly rows: readonly object[]
}

/** Makes letters of dead items, or reopens theirs. */
export async function bury<D extends Death>(
  work: OfficeWork,
  registers: Registers,
  taking: Taking<D>,
  given: readonly D[],
): Promise<Buried<D>> {
  const { deaths, letters, cases } = await hold(work.tx, taking, given)
  const isKnown = ({ caseId }: D): boolean => caseId !== null && letters.has(caseId)
  const filing = new Filing(work, registers, cases)
  const fresh = deaths.filter((death) => !isKnown(death))
  const filed = await file(work, taking, filing, fresh)
  const again = deaths.filter(isKnown)
  const reopened = await reopen(work, taking, filing, again, letters)
  return {
    ...filed,
    deaths,
    reopened: again.length,
    letters: new Map([...filed.letters, ...reopened]),
  }
}

/** Everybody's lock order: items of queues (locked by their cycles), letters ascending, rows of other sources ascending. One round trip. */
async function hold<D extends Death>(tx: Transaction, taking: Taking<D>, deaths: readonly D[]) {
  const asked = deaths.flatMap(({ caseId }) => (caseId === null || taking.letters?.has(caseId) ? [] : caseId))
  const isAsked = asked.length > 0
  const [letters, cases, held] = await Promise.all([
    taking.letters ?? (isAsked ? lockLettersOf(tx, asked) : NONE),
    isAsked ? readCases(tx, asked) : NONE,
    taking.hold?.(deaths) ?? deaths,
  ])
  return { letters: new Map(letters), cases, deaths: held }
}

const NONE: ReadonlyMap<LetterId, never> = new Map<LetterId, never>()

/** Works out notes, each part once. */
class Filing {
  readonly #work: OfficeWork
  readonly #registers: Registers
  readonly #cases: ReadonlyMap<LetterId, Case>
  readonly #numbers = new Map<Cause, Map<string, Promise<Filed>>>()
  readonly #asked = new Map<string, Promise<number>>()

  constructor(work: OfficeWork, registers: Registers, cases: ReadonlyMap<LetterId, Case>) {
    this.#work = work
    this.#registers = registers
    this.#cases = cases
  }

  /** Notes of new letters, and the index of each death's note. */
  async ofFresh(
    deaths: readonly Death[],
  ): Promise<{ notes: readonly DeathNote[]; places: readonly number[] }> {
    const drafts: Promise<DeathNote>[] = []
    const shared = new Map<Cause, number>()
    const places = deaths.map((death) => {
      const draft = () => drafts.push(this.#captured(death)) - 1
      return isPlain(death) ? once(shared, death.cause, draft) : draft()
    })
    // In parallel: new numbers are asked for together.
    return { notes: await Promise.all(drafts), places }
  }

  /** Takes the capture time before it waits for anything: deaths are in order. */
  #captured(death: Death): Promise<DeathNote> {
    const { cause, instanceId } = death
    const { now } = this.#work
    const capturedAt =
      death.capturedAt ??
      (instanceId === undefined ? now : this.#registers.times.take(cause.engine, instanceId, now))
    return this.note(death, cause, cause.record.captured, capturedAt)
  }

  async note(
    death: Death,
    where: Where,
    operation: string,
    capturedAt: Instant = this.#work.now,
  ): Promise<DeathNote> {
    const { cause, caseId, sourceId, instanceId = null, reportedCount, output } = death
    const before = caseId === null ? undefined : this.#cases.get(caseId)
    const lastFailureAt = death.lastFailureAt ?? this.#work.now
    const { captured, reopened, ...record } = cause.record
    return {
      ...cause,
      ...(await this.#filedUnder(cause, where, operation, lastFailureAt)),
      queue: where.queue,
      instanceId,
      correlationId: death.correlationId ?? before?.correlationId ?? (instanceId === null ? null : sourceId),
      ...(reportedCount !== undefined && { reportedCount }),
      record: { ...record, operation, output: output ?? record.output },
      capturedAt,
      firstFailureAt: death.firstFailureAt ?? before?.firstFailureAt ?? lastFailureAt,
      lastFailureAt,
    }
  }

  #filedUnder(cause: Cause, where: Where, operation: string, failedAt: Instant): Promise<Filed> {
    const ofCause = once(this.#numbers, cause, () => new Map<string, Promise<Filed>>())
    const label = `${operation} ${where.source} ${where.engine} ${where.queue ?? ''}`
    return once(ofCause, label, () => this.#find(cause, where, operation, failedAt))
  }

  /** Asks for each number once: registers remember new ones only after the commit. */
  async #find(cause: Cause, where: Where, operation: string, failedAt: Instant): Promise<Filed> {
    const { source, engine } = where
    const { drawers, operationKinds } = this.#registers
    const { status } = cause.record
    const signature = signatureOf(cause)
    const label = { source, engine, queue: where.queue ?? '', signature, failedAt }
    const [drawer, number] = await Promise.all([
      once(this.#asked, `drawer ${source} ${engine} ${label.queue} ${signature.fingerprint}`, () =>
        drawers.numberOf(this.#work, label),
      ),
      once(this.#asked, `series ${engine} ${operation} ${status}`, () =>
        operationKinds.numberOf(this.#work, engine, operation, status),
      ),
    ])
    return { ...storableError(cause), source, engine, drawer, series: number }
  }
}

function once<Key, Of>(known: Map<Key, Of>, key: Key, ask: () => Of): Of {
  const found = known.get(key) ?? ask()
  known.set(key, found)
  return found
}

type Where = Pick<Cause, 'source' | 'engine' | 'queue'>

type Filed = Pick<
  DeathNote,
  'source' | 'engine' | 'errorClass' | 'errorMessage' | 'errorStack' | 'drawer' | 'series'
>

const isPlain = (death: Death): boolean =>
  death.caseId === null &&
  (death.instanceId ?? death.correlationId ?? death.reportedCount ?? death.lastFailureAt ?? death.output) ===
    undefined

/** New letters, their notes, and the index of each note. */
interface Fresh<D> {
  readonly deaths: readonly D[]
  readonly notes: readonly DeathNote[]
  readonly places: readonly number[]
}

async function file<D extends Death>(
  work: OfficeWork,
  taking: Taking<D>,
  filing: Filing,
  deaths: readonly D[],
): Promise<Omit<Buried<D>, 'deaths' | 'reopened'>> {
  if (deaths.length === 0)
    return { taken: 0, captured: 0, letters: new Map(), rows: [], notes: () => new Map() }
  const fresh = { deaths, ...(await filing.ofFresh(deaths)) }
  const filed = await (work.tx.dialect === 'postgres' ? fileAll : fileEach)(work, taking, fresh)
  const notes = () =>
    new Map(
      deaths.flatMap((death, i) => {
        const note = fresh.notes[fresh.places[i] ?? -1]
        return note === undefined ? [] : [[death, note] as const]
      }),
    )
  return { ...filed, notes }
}

async function fileAll<D extends Death>(work: OfficeWork, taking: Taking<D>, fresh: Fresh<D>) {
  const { deaths, notes, places } = fresh
  const numbers = places.map((place) => place + 1)
  const { statement, values } = taking.all(deaths, numbers)
  const capture = capturingBy(statement, notes)
  const rows = await work.tx.rows<CapturedRow>(capture.statement, work.now, ...values, ...capture.values)
  const firsts = new Map(rows.map(({ note, first }) => [Number(note), first]))
  const letters = new Map<D, LetterId>()
  for (const [i, death] of deaths.entries()) {
    const first = isPlain(death) ? undefined : firsts.get(numbers[i] ?? 0)
    if (first != null) letters.set(death, letterId(first))
  }
  return { ...countCaptured(work, notes, rows), letters, rows }
}

async function fileEach<D extends Death>(work: OfficeWork, taking: Taking<D>, fresh: Fresh<D>) {
  const { deaths, notes, places } = fresh
  const ids = await allocateLetterIds(work.tx, deaths.filter(({ caseId }) => caseId === null).length)
  const [[note], [first], last] = [notes, ids, ids.at(-1)]
  if (taking.alike && note && first && last && notes.length === 1 && deaths.every(isPlain)) {
    const taken = taking.alike(deaths, first)
    const captured = await fileAlike(work, note, { first, last }, taken)
    return { taken: await taken.remove(), captured, letters: new Map<D, LetterId>(), rows: [] }
  }
  const next = ids.values()
  const letters = new Map<D, LetterId>()
  for (const [i, death] of deaths.entries()) {
    const { caseId, sourceId } = death
    const id = caseId ?? next.next().value
    const note = notes[places[i] ?? -1]
    if (id === undefined || note === undefined) throw new Error(`'${sourceId}' died of nothing`)
    const left = await taking.each(death, id)
    if (left === null) continue
    await captureOne(work, id, note, death, left)
    letters.set(death, id)
  }
  return { taken: deaths.length, captured: letters.size, letters, rows: [] }
}

/** Reopens letters; several deaths of one letter take one round each. */
async function reopen<D extends Death>(
  work: OfficeWork,
  taking: Taking<D>,
  filing: Filing,
  again: readonly D[],
  letters: Map<LetterId, CaseRow>,
): Promise<ReadonlyMap<D, LetterId>> {
  const reopened = new Map<D, LetterId>()
  for (let rest = again; rest.length > 0; rest = rest.filter((death) => !reopened.has(death))) {
    const round = [...new Map(rest.toReversed().map((death) => [death.caseId, death])).values()].toReversed()
    await taking.end(round, letters)
    const failed = await Promise.all(round.map((death) => failedAgain(work, taking, filing, death, letters)))
    await change(work, 'reopen', failed, NOBODY)
    for (const [i, { id, note }] of failed.entries()) {
      const [before, death] = [letters.get(id), round[i]]
      if (before !== undefined) letters.set(id, reopenedIn(before, note.drawer))
      if (death !== undefined) reopened.set(death, id)
    }
  }
  return reopened
}

async function failedAgain<D extends Death>(
  { now }: OfficeWork,
  { refiles = false }: Taking<D>,
  filing: Filing,
  death: D,
  letters: ReadonlyMap<LetterId, CaseRow>,
): Promise<Failed> {
  const { cause, caseId, diedAs, attempts, position } = death
  const before = caseId === null ? undefined : letters.get(caseId)
  if (before === undefined) throw new Error(`'${death.sourceId}' has no letter to reopen`)
  const where = refiles ? cause : { ...before, queue: before.queue || null }
  const note = await filing.note(death, where, cause.record.reopened)
  // The first failure stays the first.
  const newest = { ...note, firstFailureAt: now }
  const { id, engine } = before
  return { id, engine, before, note: newest, diedAs, deliveries: attempts, position }
}

export function noteFailures(
  work: OfficeWork,
  registers: Registers,
  failures: readonly { readonly death: Death; readonly operation: string }[],
): Promise<readonly DeathNote[]> {
  const filing = new Filing(work, registers, NONE)
  return Promise.all(failures.map(({ death, operation }) => filing.note(death, death.cause, operation)))
}
