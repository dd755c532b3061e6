/**
 * Reported failures: each becomes a letter, or goes onto the letter that its source id has. What is reported while a transaction is under
 * way shares the next one; however many reports it has, those that are new are looked for, filed and read by one statement each.
 */
import type { Clock } from '../core/clock.ts'
import { textBytes } from '../core/content.ts'
import type { Gather } from '../core/gather.ts'
import { type Database, type Integer, sql, type Transaction } from '../db/database.ts'
import { rowsGiven } from '../db/given.ts'
import { bury, PLAIN_RECORD } from './bury.ts'
import { type GivenDeath, takingGiven } from './capture.ts'
import { readSummaries } from './detail.ts'
import type { Registers } from './drawers.ts'
import { type Ask, gatherAnswers, WEIGHT_OF_LETTER } from './gathered-answers.ts'
import type { Answer } from './idempotency.ts'
import { type LetterId, type LetterSummary, letterId, type SourceName } from './letter.ts'
import type { EngineNames, FailureReport } from './report.ts'
import { reportAgain } from './report-again.ts'
import type { LetterSource } from './source.ts'
import type { OfficeWork } from './work.ts'

/** What captures are filed with. */
export interface CaptureDesk {
  readonly registers: Registers
  /** The source that a letter goes back to. */
  sourceOf(source: SourceName): LetterSource
}

export interface CaptureResult {
  readonly letter: LetterSummary
  /** False when the source id had its letter already. */
  readonly created: boolean
}

/** Reports that are filed together, all or none, and what is answered then. */
export interface CaptureAsk extends Ask {
  readonly reports: readonly FailureReport[]
  answer(results: readonly CaptureResult[]): Answer
}

export class Captures {
  readonly #desk: CaptureDesk
  readonly #engines: Pick<EngineNames, 'check' | 'queueOf'>
  readonly #gather: Gather<CaptureAsk, Answer>

  constructor(
    db: Database,
    clock: Clock,
    { engines, ...desk }: CaptureDesk & { readonly engines: Pick<EngineNames, 'check' | 'queueOf'> },
  ) {
    this.#desk = desk
    this.#engines = engines
    this.#gather = gatherAnswers(db, clock, 'letters.capture', (work, asks) => this.#file(work, asks))
  }

  /** Files the reports. When this returns, they are durable. */
  async file(ask: CaptureAsk): Promise<Answer> {
    for (const { engine } of ask.reports) this.#engines.check(engine)
    const weight = ask.reports.reduce((sum, { payload }) => sum + payload.length + WEIGHT_OF_LETTER, 0)
    return this.#gather.do(ask, weight)
  }

  async #file(work: OfficeWork, asks: readonly CaptureAsk[]): Promise<readonly Answer[]> {
    const reports = await this.#withQueues(
      work.tx,
      asks.flatMap((ask) => ask.reports),
    )
    const captured = await captureReports(work, this.#desk, reports)
    const ids = new Set(captured.map(({ id }) => id))
    const letters = new Map((await readSummaries(work.tx, [...ids])).map((letter) => [letter.id, letter]))
    const results = captured.map(({ id, created }) => {
      const letter = letters.get(id)
      if (letter === undefined) throw new Error(`letter ${id} was captured and is not there`)
      return { letter, created }
    })
    return asks.map((ask) => ask.answer(results.splice(0, ask.reports.length)))
  }

  /** A report that names no queue is of the engine's own, if it has one. */
  async #withQueues(tx: Transaction, reports: readonly FailureReport[]): Promise<readonly FailureReport[]> {
    const queues = new Map<string, string | null>()
    for (const { engine, originalQueue } of reports) {
      if (originalQueue === null && !queues.has(engine))
        queues.set(engine, await this.#engines.queueOf(engine, tx))
    }
    return reports.map((report) => ({
      ...report,
      originalQueue: report.originalQueue ?? queues.get(report.engine) ?? null,
    }))
  }
}

/** The letter of a report. */
export interface Captured {
  readonly id: LetterId
  /** False when the source id had its letter already. */
  readonly created: boolean
}

/** The letters of source ids, each by one step into letters_by_source. */
const readBySource = sql(
  'letters.bySource',
  `SELECT given.place AS place, (SELECT id FROM bartleby.letters WHERE engine = given.engine AND source_id = given.source_id) AS id
   FROM unnest($1::int[], $2::text[], $3::text[]) AS given (place, engine, source_id)`,
)

/** Files reports, those about one source id one after the other. Gives the letter of each. */
export async function captureReports(
  work: OfficeWork,
  desk: CaptureDesk,
  reports: readonly FailureReport[],
): Promise<readonly Captured[]> {
  const captured = new Map<number, Captured>()
  // Retention may remove a letter between two looks at it: then its report is in the next round.
  for (let rest = [...reports.keys()]; rest.length > 0; rest = rest.filter((place) => !captured.has(place))) {
    const round = firstOfEach(reports, rest)
    const known = await lettersOf(work.tx, round)
    const fresh = [...round].filter(([place]) => !known.has(place))
    for (const [place, id] of await fileNew(work, desk.registers, fresh))
      captured.set(place, { id, created: true })
    const again = [...round].flatMap(([place, report]) => {
      const id = known.get(place)
      return id === undefined ? [] : { place, id, report }
    })
    const there = await reportAgain(work, desk, again)
    for (const { place, id } of again) if (there.has(id)) captured.set(place, { id, created: false })
  }
  return [...reports.keys()].flatMap((place) => captured.get(place) ?? [])
}

/** The first report about each source id, by its place. */
function firstOfEach(
  reports: readonly FailureReport[],
  places: readonly number[],
): ReadonlyMap<number, FailureReport> {
  const first = new Map<string, readonly [number, FailureReport]>()
  for (const place of places) {
    const report = reports[place]
    // No engine has a space in its name.
    const name = `${report?.engine} ${report?.sourceId}`
    if (report !== undefined && !first.has(name)) first.set(name, [place, report])
  }
  return new Map(first.values())
}

/** The letters that there are, by the places of their reports. */
async function lettersOf(
  tx: Transaction,
  reports: ReadonlyMap<number, FailureReport>,
): Promise<ReadonlyMap<number, LetterId>> {
  const asked = [...reports].map(([place, { engine, sourceId }]) => ({ place, engine, source_id: sourceId }))
  const rows = await rowsGiven<{ place: Integer; id: Integer | null }>(tx, readBySource, asked)
  return new Map(rows.flatMap(({ place, id }) => (id === null ? [] : [[Number(place), letterId(id)]])))
}

/** Files what is new, in the order given. */
async function fileNew(
  work: OfficeWork,
  registers: Registers,
  reports: readonly (readonly [place: number, report: FailureReport])[],
): Promise<readonly (readonly [place: number, id: LetterId])[]> {
  if (reports.length === 0) return []
  const deaths = reports.map(([, report]) => deathOf(work, report))
  const { letters } = await bury(work, registers, takingGiven(), deaths)
  return reports.map(([place, { engine, sourceId }], i) => {
    const death = deaths[i]
    const id = death === undefined ? undefined : letters.get(death)
    if (id === undefined) throw new Error(`the letter of ${engine} '${sourceId}' was neither found nor filed`)
    return [place, id]
  })
}

function deathOf({ now }: OfficeWork, report: FailureReport): GivenDeath {
  const { source, engine, sourceId, instanceId, correlationId, dequeueCount, payload } = report
  const { errorClass, errorMessage, errorStack, failedBy, actor } = report
  const lastFailureAt = report.lastFailureAt ?? now
  return {
    cause: {
      source,
      engine,
      queue: report.originalQueue,
      reason: 'failed',
      errorClass,
      errorMessage,
      errorStack,
      failedBy,
      record: { ...PLAIN_RECORD, actor },
    },
    caseId: null,
    sourceId,
    diedAs: sourceId,
    attempts: dequeueCount,
    grave: null,
    instanceId,
    correlationId,
    lastFailureAt,
    firstFailureAt: report.firstFailureAt ?? lastFailureAt,
    reportedCount: dequeueCount,
    remains: {
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
