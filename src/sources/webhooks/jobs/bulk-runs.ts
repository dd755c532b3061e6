/**
 * Requeue and purge of all dead jobs of a consumer: runs from the oldest job to the newest that was dead at the start, so that they end
 * while jobs keep dying.
 */
import type { Instant } from '../../../core/clock.ts'
import { letterId } from '../../../letters/letter.ts'
import type { OfficeRuns, OfficeWork } from '../../../letters/work.ts'
import { type Integer, sql } from '../../../store/database.ts'
import { orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import type { Run, RunKind, Step } from '../../../work/run.ts'
import { eraseJobs, requeueJobs, webhookLetterSource } from '../letters/source.ts'
import { readDeadCounts } from '../numbers/dead-counts.ts'
import type { Parts } from '../settings.ts'
import { type Consumer, JOB, queueOfConsumer } from '../webhook.ts'
import { readConsumerNames } from './job-sql.ts'

export const BULK_KINDS = ['requeue', 'purge'] as const
type BulkKind = (typeof BULK_KINDS)[number]

export interface BulkRun extends Pick<Run, 'id' | 'actor' | 'startedAt' | 'done'> {
  readonly kind: BulkKind
  readonly consumer: number
  readonly channelId: string
  readonly consumerId: string
  /** Null: under way. */
  readonly finishedAt: Instant | null
  /** Dead jobs at the start; never less than are done. */
  readonly expected: number
}

/** `createdAt` is an instant in digits. */
const PLACE = rowShape({ createdAt: String, id: text })
type JobPlace = RowOf<typeof PLACE>

interface Subject extends Pick<BulkRun, 'consumer' | 'channelId' | 'consumerId'> {
  /** The end, inclusive. */
  readonly last: JobPlace
  /** Where the run began: other servers may have other settings. Absent in runs of earlier versions. */
  readonly maxRetry?: number
}

const BEFORE_ALL: JobPlace = { createdAt: '0', id: '' }
const PREFIX = 'webhook-'
const KINDS = BULK_KINDS.map((kind) => `${PREFIX}${kind}`)

interface BulkRunsOptions extends Pick<Parts, 'settings' | 'onJobs'> {
  readonly runs: OfficeRuns
}

/** How long a caller waits for a requeue that goes on without it. */
const WAIT_US = 1_000_000n

/** On webhook_jobs_dead. */
const readNewestDead = sql(
  'webhooks.newestDead',
  `SELECT ${PLACE.columns} FROM bartleby.webhook_jobs INDEXED BY webhook_jobs_dead
    WHERE consumer = $1 AND state = ${JOB.dead} ORDER BY created_at DESC, id DESC LIMIT 1`,
  { bigints: true },
)

/** In the order of webhook_jobs_dead. Locks nothing: letters come first. */
const readNext = sql(
  'webhooks.nextDead',
  `
    SELECT id, created_at, letter, exhausted = 1 OR attempts >= $7 AS is_exhausted
    FROM bartleby.webhook_jobs INDEXED BY webhook_jobs_dead
    WHERE consumer = $1 AND state = ${JOB.dead} AND (created_at, id) > ($2, $3) AND (created_at, id) <= ($4, $5)
    ORDER BY created_at, id LIMIT $6`,
  { bigints: true },
)

const DEAD = rowShape({
  id: text,
  createdAt: String,
  letter: orNull(letterId),
  isExhausted: (value: Integer | boolean) => Boolean(Number(value)),
})
type DeadRow = RowOf<typeof DEAD>

export class BulkRuns {
  readonly #options: BulkRunsOptions

  constructor(options: BulkRunsOptions) {
    this.#options = options
    for (const kind of BULK_KINDS) options.runs.define(this.#kind(kind))
  }

  /** Returns when it is done or, after a second, while it goes on. */
  async requeueAll(consumer: Consumer, actor: string): Promise<void> {
    const run = await this.#begin('requeue', consumer, actor)
    // Durable from here on, whatever happens to this server.
    if (run !== null) await this.#options.runs.over(run.id, WAIT_US)
  }

  /** Erases all dead jobs whose attempts are used up. */
  async purge(consumer: Consumer, actor: string): Promise<number> {
    const begun = await this.#begin('purge', consumer, actor)
    if (begun === null) return 0
    return this.#options.runs.done(begun.id)
  }

  async list(limit: number): Promise<readonly BulkRun[]> {
    const { runs } = this.#options
    return bulkRunsOf(await runs.list({ kinds: KINDS, states: null, before: null, limit }))
  }

  /** Null when there is nothing to do. */
  #begin(kind: BulkKind, { number }: Consumer, actor: string): Promise<Run | null> {
    const { runs, settings } = this.#options
    return runs.inWork('webhooks.beginRun', async (work) => {
      const last = await PLACE.one(work.tx, readNewestDead, number)
      if (last === null) return null
      const counts = await readDeadCounts(work.tx)
      const { channelId, consumerId } = await readConsumerNames(work.tx, number)
      return runs.begin<Subject, JobPlace>(work, {
        kind: `${PREFIX}${kind}`,
        about: `${channelId}/${consumerId}`,
        subject: { consumer: number, channelId, consumerId, last, maxRetry: settings.delivery.maxRetry },
        place: BEFORE_ALL,
        actor,
        expected: counts.find(({ consumer }) => consumer === number)?.deadCount ?? 0,
      })
    })
  }

  #kind(kind: BulkKind): RunKind<OfficeWork, Subject, JobPlace> {
    const { settings, onJobs } = this.#options
    const source = webhookLetterSource({ onJobs })
    return {
      kind: `${PREFIX}${kind}`,
      batch: settings.dlq.batchSize,
      // With a third of that another consumer got 70% of its deliveries during a purge, so 84%.
      rest: 1,
      step: async (work, run, most) => {
        const { place, subject, actor } = run
        const { consumer, channelId, consumerId, last, maxRetry = settings.delivery.maxRetry } = subject
        const stretch = [place.createdAt, place.id, last.createdAt, last.id] as const
        const rows = await DEAD.all(work.tx, readNext, consumer, ...stretch, most, maxRetry)
        const jobs = rows.filter(({ isExhausted }) => kind === 'requeue' || isExhausted)
        const queue = queueOfConsumer(channelId, consumerId)
        const letters = jobs.flatMap(({ letter }) => letter ?? [])
        const requeue = { queue, letters, notes: 'Requeued', actor }
        const erasure = { isRun: true, correlationId: run.id, instanceId: queue, actor, notes: 'Purged' }
        const done =
          kind === 'requeue'
            ? (await requeueJobs(work, source, requeue)).length
            : await eraseJobs(work, jobs, maxRetry, erasure)
        return stepOf(rows, done, most)
      },
    }
  }
}

function stepOf(rows: readonly DeadRow[], done: number, most: number): Step<JobPlace> {
  const end = rows.at(-1)
  return {
    ...(end === undefined ? {} : { place: { createdAt: end.createdAt, id: end.id } }),
    done,
    skipped: rows.length - done,
    next: rows.length < most ? 'finished' : 'more',
  }
}

export const bulkRunsOf = (runs: readonly Run[]): readonly BulkRun[] =>
  runs.flatMap(({ kind: name, subject, startedAt, endedAt: finishedAt, expected, ...run }) => {
    const kind = BULK_KINDS.find((known) => name === `${PREFIX}${known}`)
    if (kind === undefined) return []
    const { id, actor, done } = run
    // As it was begun above.
    const { consumer, channelId, consumerId } = subject as Subject
    const who = { consumer, channelId, consumerId }
    return { id, kind, ...who, actor, startedAt, finishedAt, expected: expected ?? done, done }
  })
