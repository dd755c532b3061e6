/** Jobs as consumers know them. Every change is one transaction with its counts and its letter; whoever comes too late changes nothing. */

import { Batcher } from '../../../core/batcher.ts'
import type { Clock } from '../../../core/clock.ts'
import { parseXid } from '../../../core/xid.ts'
import type { LetterSource } from '../../../letters/source.ts'
import { inOffice } from '../../../letters/work.ts'
import { type Database, type Session, StoreUnavailable } from '../../../store/database.ts'
import { eraseJobs, requeueJobs, webhookLetterSource } from '../letters/source.ts'
import { Refused } from '../refusal.ts'
import { type Page, type PageRequest, spanOf } from '../registry/pages.ts'
import { claimUs, type Parts, type WebhookSettings } from '../settings.ts'
import { type Consumer, JOB, JOB_STATUSES, type JobStatus, statusOf } from '../webhook.ts'
import {
  type DeadJob,
  type JobRecord,
  type QueuedJob,
  queueOf,
  readDeadJobs,
  readJob,
  readJobDetail,
  readQueuedJobs,
} from './job-sql.ts'
import { actorOf, type MoveKind, moveJobs, type PullMove } from './pull-moves.ts'

/** What a consumer may make of a job; `null` changes nothing, anything else is refused. */
const TRANSITIONS: Readonly<Record<JobStatus, Readonly<Partial<Record<JobStatus, MoveKind | null>>>>> = {
  QUEUED: { QUEUED: null, INFLIGHT: 'claim' },
  INFLIGHT: { INFLIGHT: null, DELIVERED: 'deliver', DEAD: 'give up' },
  DELIVERED: { DELIVERED: null },
  DEAD: { INFLIGHT: 'take', DEAD: null },
}

/** Of one transaction: what a consumer with many workers has under way. */
const MOST_MOVES = 200

export class Jobs {
  readonly #db: Database
  readonly #clock: Clock
  readonly #settings: WebhookSettings
  readonly #source: LetterSource
  readonly #moves: Batcher<PullMove, boolean>

  constructor({ db, clock, registers, settings, onJobs }: Omit<Parts, 'log' | 'xids'>) {
    this.#db = db
    this.#clock = clock
    this.#settings = settings
    this.#source = webhookLetterSource({ onJobs })
    const { delivery } = settings
    const terms = { registers, maxRetry: delivery.maxRetry, claimUs: claimUs(delivery) }
    this.#moves = new Batcher(
      (batch) => inOffice(db, clock, 'webhooks.move', (work) => moveJobs(work, terms, batch)),
      {
        most: MOST_MOVES,
        atOnce: db.dialect === 'postgres' ? 2 : 1,
        meetsAll: (error) => error instanceof StoreUnavailable,
      },
    )
  }

  async get(consumer: Consumer, jobId: string) {
    const id = parseXid(jobId)
    const found =
      id === null ? null : await this.#db.session('webhooks.getJob', (session) => readJobDetail(session, id))
    const job = ownJob(consumer, found)
    return {
      ...job,
      status: statusOf(job.state),
      statusChangedAt: job.changedAt,
      listenerEndpoint: consumer.callbackUrl,
      listenerName: consumer.name,
    }
  }

  queued(consumer: Consumer, limit: number): Promise<readonly QueuedJob[]> {
    return this.#db.session('webhooks.queued', (session) => readQueuedJobs(session, consumer.number, limit))
  }

  async dead(consumer: Consumer, page: PageRequest): Promise<Page<DeadJob>> {
    const span = spanOf(page)
    return this.#db.session('webhooks.deadJobs', (session) => readDeadJobs(session, consumer, span))
  }

  async move(consumer: Consumer, jobId: string, nextState: string, extraSeconds: number): Promise<void> {
    const found = await this.#db.session('webhooks.getJob', (session) => readJobCalled(session, jobId))
    const job = ownJob(consumer, found)
    if (extraSeconds !== 0 && (nextState !== 'INFLIGHT' || job.state === JOB.inFlight)) {
      throw new Refused('timeout_misplaced')
    }
    const next = JOB_STATUSES.find((status) => status === nextState)
    const kind = next === undefined ? undefined : TRANSITIONS[statusOf(job.state)][next]
    if (kind === undefined) throw new Refused('transition_invalid')
    if (kind === null) return
    if (!(await this.#moves.do({ kind, job, extraSeconds }))) throw new Refused('transition_invalid')
  }

  async requeue(consumer: Consumer, jobId: string): Promise<void> {
    await inOffice(this.#db, this.#clock, 'webhooks.requeue', async (work) => {
      const { tx } = work
      const job = ownJob(consumer, await readJobCalled(tx, jobId))
      const letters = job.state !== JOB.dead || job.letter === null ? [] : [job.letter]
      const queue = await queueOf(tx, consumer.number)
      const requeue = { queue, letters, notes: 'Requeued', actor: actorOf(queue) }
      const sent = await requeueJobs(work, this.#source, requeue)
      if (sent.length === 0) throw new Refused('job_not_dead')
    })
  }

  /** Only when its attempts are used up; with its letter. */
  async erase(consumer: Consumer, jobId: string): Promise<void> {
    const { maxRetry } = this.#settings.delivery
    await inOffice(this.#db, this.#clock, 'webhooks.eraseJob', async (work) => {
      const { tx } = work
      const id = parseXid(jobId)
      const job = id === null ? null : await readJobDetail(tx, id)
      if (job === null || job.consumer !== consumer.number || job.state !== JOB.dead || job.letter === null) {
        throw new Refused('resource_unknown')
      }
      if (!job.exhausted && job.attempts < maxRetry) throw new Refused('not_exhausted')
      const queue = await queueOf(tx, consumer.number)
      const history = { correlationId: job.messageId, instanceId: queue, actor: actorOf(queue) }
      const erasure = { isRun: false, ...history, notes: 'Deleted' }
      if ((await eraseJobs(work, [job], maxRetry, erasure)) === 0) throw new Refused('resource_unknown')
    })
  }
}

export type JobView = Awaited<ReturnType<Jobs['get']>>

function ownJob<Job extends JobRecord>(consumer: Consumer, job: Job | null): Job {
  if (job === null) throw new Refused('job_unknown')
  if (job.consumer !== consumer.number) throw new Refused('job_of_another')
  return job
}

async function readJobCalled(session: Session, jobId: string): Promise<JobRecord | null> {
  const id = parseXid(jobId)
  return id === null ? null : readJob(session, id)
}
