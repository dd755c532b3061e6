/**
 * Intake of reported failures: each becomes a letter, or goes onto the letter of its source id. Reports that arrive during a
 * transaction share the next one, which looks up, files and reads new ones by one statement each.
 */
import { setImmediate as endOfTurn } from 'node:timers/promises'
import type { Batcher } from '../../core/batcher.ts'
import type { Clock } from '../../core/clock.ts'
import { textBytes } from '../../core/content.ts'
import { formatRowKey } from '../../core/row-key.ts'
import { sourceName } from '../../core/source-id.ts'
import { type Ask, batchAnswers, ROWS_OF_TURN, weightOf } from '../../store/batched-answers.ts'
import { type Database, type Integer, sql, type Transaction } from '../../store/database.ts'
import type { Answer } from '../../store/idempotency.ts'
import { filledUp, rowsGiven } from '../../store/idioms.ts'
import { bury } from '../bury.ts'
import { type DeathNote, type GivenDeath, takingGiven } from '../capture.ts'
import type { SourceName } from '../kinds.ts'
import { type LetterId, type LetterSummary, letterId } from '../letter.ts'
import { readSummaries } from '../lists/detail.ts'
import { DrawerLabels } from '../numbers/find-drawers.ts'
import type { Registers } from '../registers.ts'
import type { LetterSource } from '../source.ts'
import { inOffice, type OfficeWork } from '../work.ts'
import { type EngineNames, type FailureReport, isSameFailure } from './report.ts'
import { causeOf, reportAgain } from './report-again.ts'

export interface CaptureDesk {
  readonly registers: Registers
  sourceOf(source: SourceName): LetterSource
}

export interface CaptureResult {
  readonly letter: LetterSummary
  /** False: the source id had its letter already. */
  readonly created: boolean
}

/** Reports filed together, all or none. */
interface CaptureAsk extends Ask {
  readonly reports: readonly FailureReport[]
  answer(results: readonly CaptureResult[]): Answer
}

/** Different failures of one source id per transaction: they are filed one by one. */
export const MOST_OF_SOURCE_ID = 20

export class ReportIntake {
  readonly #desk: CaptureDesk
  readonly #engines: Pick<EngineNames, 'check' | 'queueOf'>
  readonly #gather: Batcher<CaptureAsk, Answer>

  constructor(
    db: Database,
    clock: Clock,
    { engines, ...desk }: CaptureDesk & { readonly engines: Pick<EngineNames, 'check' | 'queueOf'> },
  ) {
    this.#desk = desk
    this.#engines = engines
    this.#gather = batchAnswers<CaptureAsk, OfficeWork, Seen>(
      db.dialect,
      {
        within: (act) => inOffice(db, clock, 'letters.capture', act),
        look: (work, asks) => this.#look(work, asks),
        act: (work, asks, seen) => this.#file(work, asks, seen),
      },
      {
        subjectsOf: ({ reports }) => reports.map(sourceName),
        mostOfSubject: MOST_OF_SOURCE_ID,
      },
    )
  }

  /** Durable when this returns. */
  async file(ask: CaptureAsk): Promise<Answer> {
    for (const { engine } of ask.reports) this.#engines.check(engine)
    const weightOfReport = ({ payload, headers, errorClass, errorMessage, errorStack }: FailureReport) =>
      weightOf(payload, headers, errorClass, errorMessage, errorStack)
    return this.#gather.do(
      ask,
      ask.reports.reduce((sum, report) => sum + weightOfReport(report), 0),
    )
  }

  async #look({ tx }: OfficeWork, asks: readonly CaptureAsk[]): Promise<Seen> {
    const reports = asks.flatMap((ask) => ask.reports)
    const engines = reports.flatMap(({ engine, originalQueue }) => (originalQueue === null ? engine : []))
    const [known, ...queues] = await Promise.all([
      lettersOf(tx, reports),
      ...[...new Set(engines)].map(
        async (engine) => [engine, await this.#engines.queueOf(engine, tx)] as const,
      ),
    ])
    return { known, queues: new Map(queues) }
  }

  async #file(work: OfficeWork, asks: readonly CaptureAsk[], seen: Seen): Promise<readonly Answer[]> {
    const reports = asks.flatMap((ask) => ask.reports)
    const captured = await captureReports(work, this.#desk, reports, seen)
    const again = captured.flatMap(({ id, letter }) => (letter === null ? id : []))
    // Of this transaction only: a rollback takes its new drawers with it.
    const labels = new DrawerLabels()
    const read = await inBites(work.tx, [...new Set(again)], (bite) => readSummaries(work.tx, bite, labels))
    const known = new Map(read.map((letter) => [letter.id, letter]))
    const results = captured.map(({ id, created, letter }) => {
      const filed = letter ?? known.get(id)
      if (filed === undefined) throw new Error(`letter ${id} was captured and is not there`)
      return { letter: filed, created }
    })
    return asks.map((ask) => ask.answer(results.splice(0, ask.reports.length)))
  }
}

interface Seen {
  readonly known: KnownLetters
  /** Engines' own queues, for reports that name none. */
  readonly queues: ReadonlyMap<string, string | null>
}

/** By name of the source id. */
type KnownLetters = ReadonlyMap<string, LetterId>

export interface Captured {
  readonly id: LetterId
  /** False: the source id had its letter already. */
  readonly created: boolean
  /** null: it must be read. */
  readonly letter: LetterSummary | null
}

/** One step into letters_by_source each. */
const OF_SOURCE_ID =
  'SELECT id FROM bartleby.letters WHERE engine = given.engine AND source_id = given.source_id'
const readBySource = sql(
  'letters.bySource',
  `SELECT given.engine AS engine, given.source_id AS source_id, (${OF_SOURCE_ID}) AS id
   FROM unnest($1::text[], $2::text[]) AS given (engine, source_id) WHERE (${OF_SOURCE_ID}) IS NOT NULL`,
)

/** Files reports, those about one source id one by one. */
export async function captureReports(
  work: OfficeWork,
  desk: CaptureDesk,
  reports: readonly FailureReport[],
  { known: seen, queues }: Seen,
): Promise<readonly Captured[]> {
  const captured = new Map<number, Captured>()
  let known: KnownLetters | null = seen
  // Retention may remove a letter between two looks; its report is then in the next round.
  for (let rest = [...reports.entries()]; rest.length > 0; rest = rest.filter(([i]) => !captured.has(i))) {
    const groups = Map.groupBy(rest, ([, report]) => sourceName(report))
    const round = [...groups.values()].flatMap(([first]) => (first === undefined ? [] : [first]))
    const look = async () => {
      await letOthers(work.tx)
      return lettersOf(
        work.tx,
        round.map(([, report]) => report),
      )
    }
    const there: KnownLetters = known ?? (await look())
    known = null
    // Known letters are locked before new ones are filed, like everywhere.
    const again = round.flatMap(([place, report]) => {
      const id = there.get(sourceName(report))
      return id === undefined ? [] : { place, id, report }
    })
    const left = new Set(await inBites(work.tx, again, (bite) => reportAgain(work, desk, bite)))
    for (const { place, id } of again)
      if (left.has(id)) captured.set(place, { id, created: false, letter: null })
    const fresh = round.filter(([, report]) => !there.has(sourceName(report)))
    const filed = await inBites(work.tx, fresh, (bite) =>
      fileNew(
        work,
        desk.registers,
        bite.map(([, report]) => report),
        queues,
      ),
    )
    for (const [i, [place]] of fresh.entries()) {
      const one = filed[i]
      if (one !== undefined) captured.set(place, one)
    }
    for (const [[place, first] = [-1, null], ...others] of groups.values()) {
      const id = captured.get(place)?.id
      if (first === null || id === undefined) continue
      for (const [twin, report] of others)
        if (isSameFailure(first, report)) captured.set(twin, { id, created: false, letter: null })
    }
  }
  return [...reports.keys()].flatMap((place) => captured.get(place) ?? [])
}

/** In bites on SQLite, with turns for others in between. */
async function inBites<In, Out>(
  tx: Transaction,
  all: readonly In[],
  act: (bite: readonly In[]) => Promise<Iterable<Out>>,
): Promise<readonly Out[]> {
  const outs: Out[] = []
  const size = tx.dialect === 'sqlite' ? ROWS_OF_TURN : all.length
  for (let from = 0; from < all.length; from += size) {
    if (from > 0) await letOthers(tx)
    outs.push(...(await act(all.slice(from, from + size))))
  }
  return outs
}

const letOthers = async ({ dialect }: Transaction) => dialect === 'sqlite' && (await endOfTurn())

async function lettersOf(tx: Transaction, reports: readonly FailureReport[]): Promise<KnownLetters> {
  const asked = reports.map(({ engine, sourceId }) => ({ engine, source_id: sourceId }))
  type Row = { readonly engine: string; readonly source_id: string; readonly id: Integer }
  const rows = await rowsGiven<Row>(tx, readBySource, filledUp(tx, asked))
  return new Map(
    rows.map(({ engine, source_id: sourceId, id }) => [sourceName({ engine, sourceId }), letterId(id)]),
  )
}

async function fileNew(
  work: OfficeWork,
  registers: Registers,
  reports: readonly FailureReport[],
  queues: Seen['queues'],
): Promise<readonly Captured[]> {
  if (reports.length === 0) return []
  // The engine's own queue stands for none.
  const deaths = reports.map((report) =>
    deathOf(work, report, report.originalQueue ?? queues.get(report.engine) ?? null),
  )
  const { letters, notes } = await bury(work, registers, takingGiven(), deaths)
  const noteOf = notes()
  return deaths.map((death) => {
    const [id, note] = [letters.get(death), noteOf.get(death)]
    const { engine } = death.cause
    if (id === undefined || note === undefined)
      throw new Error(`the letter of ${engine} '${death.sourceId}' was neither found nor filed`)
    const signature = registers.drawers.fingerprintOf(note.drawer)
    const letter = signature === undefined ? null : summaryOf(death, id, note, signature)
    return { id, created: true, letter }
  })
}

/** The letter as a read would show it. */
function summaryOf(
  { sourceId, item }: GivenDeath,
  id: LetterId,
  note: DeathNote,
  signature: string,
): LetterSummary {
  const { source, engine, queue, reason, errorClass, errorMessage, capturedAt } = note
  const instanceId = note.instanceId ?? sourceId
  return {
    ...{ id, engine, source, sourceId, instanceId, signature, reason, errorClass, errorMessage },
    rowKey: formatRowKey({ name: instanceId, at: capturedAt, number: id }),
    originalQueue: queue || null,
    correlationId: note.correlationId ?? sourceId,
    status: 'Pending',
    dequeueCount: item.dequeueCount,
    firstFailureAt: note.firstFailureAt,
    lastFailureAt: note.lastFailureAt,
    ...{
      resolvedAt: null,
      resolvedBy: null,
      resolution: null,
      notes: null,
      confirmedAt: null,
      deadQueue: null,
    },
  }
}

function deathOf({ now }: OfficeWork, report: FailureReport, queue: string | null): GivenDeath {
  const { source, engine, sourceId, instanceId, correlationId, dequeueCount, payload } = report
  const lastFailureAt = report.lastFailureAt ?? now
  return {
    cause: causeOf(report, { source, engine, queue }),
    ...{ caseId: null, sourceId, diedAs: sourceId, attempts: dequeueCount, position: null },
    ...{ instanceId, correlationId, lastFailureAt },
    firstFailureAt: report.firstFailureAt ?? lastFailureAt,
    reportedCount: dequeueCount,
    item: {
      itemCreatedAt: null,
      dequeueCount,
      partition: null,
      encoding: textBytes(report.encoding),
      kind: textBytes(report.kind),
      reference: textBytes(report.reference),
      headers: report.headers,
      payload: payload.length === 0 ? null : payload,
    },
  }
}
