/**
 * What should become of jobs, without any store: a handful of rules, from which the number of dead jobs follows at every moment. The
 * servers must agree with it after every step.
 */
import type { Told } from '../../world/webhooks/told.ts'

/** Attempts of a round are one more. */
export const MAX_RETRY = 1

/** What the office knows about a job that died once. */
type LetterState = 'none' | 'pending' | 'retried' | 'confirmed' | 'put aside'

export interface ModelJob {
  readonly message: string
  /** `<channel>/<consumer>` */
  readonly consumer: string
  /** `gone`: there is no job, but its letter, which may bring it back. */
  state: 'queued' | 'in flight' | 'delivered' | 'dead' | 'gone'
  attempts: number
  exhausted: boolean
  letter: LetterState
  /** Whether it died of its attempts, and not because its consumer said so. */
  diedOfAttempts: boolean
}

interface ModelConsumer {
  readonly pulls: boolean
  /** It is told of from the first death of a job on, also when none is dead any more. */
  hadDeath: boolean
}

export class Reference {
  readonly consumers = new Map<string, ModelConsumer>()
  /** By message and consumer. */
  readonly jobs = new Map<string, ModelJob>()

  register(consumer: string, pulls: boolean): void {
    this.consumers.set(consumer, { pulls, hadDeath: false })
  }

  /** Whether it could be deleted, which it is then. */
  unregister(consumer: string): boolean {
    if (this.jobsOf(consumer).some(({ state }) => state !== 'gone')) return false
    return this.consumers.delete(consumer)
  }

  /** A message reaches all consumers that its channel has. */
  dispatch(channel: string, message: string): void {
    for (const consumer of this.consumers.keys()) {
      if (!consumer.startsWith(`${channel}/`)) continue
      const start = { state: 'queued', attempts: 0, exhausted: false, letter: 'none' } as const
      this.jobs.set(`${message} ${consumer}`, { message, consumer, ...start, diedOfAttempts: false })
    }
  }

  jobsOf(consumer: string): ModelJob[] {
    return [...this.jobs.values()].filter((job) => job.consumer === consumer)
  }

  /** Jobs of pull or of push consumers in a state. */
  find(state: ModelJob['state'], pulls?: boolean): ModelJob[] {
    return [...this.jobs.values()].filter(
      (job) =>
        job.state === state && (pulls === undefined || this.consumers.get(job.consumer)?.pulls === pulls),
    )
  }

  delivered(job: ModelJob): void {
    job.state = 'delivered'
    if (job.letter === 'retried') job.letter = 'confirmed'
  }

  /** An attempt failed, or a claim lapsed. */
  failed(job: ModelJob): void {
    if (job.attempts >= MAX_RETRY) this.die(job, true)
    else {
      job.state = 'queued'
      job.attempts++
    }
  }

  die(job: ModelJob, diedOfAttempts: boolean): void {
    this.#lay(job)
    const consumer = this.consumers.get(job.consumer)
    if (consumer !== undefined) consumer.hadDeath = true
    job.diedOfAttempts = diedOfAttempts
    job.exhausted = diedOfAttempts || job.attempts >= MAX_RETRY
  }

  /** A dead job begins anew. */
  startOver(job: ModelJob): void {
    Object.assign(job, { state: 'queued', attempts: 0, exhausted: false, letter: 'retried' })
  }

  /** The consumer takes a dead job. */
  take(job: ModelJob): void {
    Object.assign(job, {
      state: 'in flight',
      attempts: job.attempts + 1,
      exhausted: false,
      letter: 'retried',
    })
  }

  mayErase(job: ModelJob): boolean {
    return job.state === 'dead' && (job.exhausted || job.attempts >= MAX_RETRY)
  }

  erase(job: ModelJob): void {
    this.jobs.delete(`${job.message} ${job.consumer}`)
  }

  /** The letter is discarded or expires, and the job is gone. */
  putAside(job: ModelJob): void {
    Object.assign(job, { state: 'gone', letter: 'put aside' })
  }

  /** Whether its letter could be restored: then it is dead again, whatever it was. */
  restore(job: ModelJob): boolean {
    if (job.state === 'in flight' || !this.consumers.has(job.consumer)) return false
    this.#lay(job)
    job.exhausted = job.diedOfAttempts
    return true
  }

  /** What everybody must say. A dead job may also be one that a forerunner of the same id had: that is told while it is there. */
  dead(): Told {
    const counts = [...this.consumers].map(([consumer, { hadDeath }]) => {
      const dead = this.jobsOf(consumer).filter(({ state }) => state === 'dead').length
      return { consumer, dead, isTold: hadDeath || dead > 0 }
    })
    return Object.fromEntries(
      counts.filter(({ isTold }) => isTold).map(({ consumer, dead }) => [consumer, dead]),
    )
  }

  #lay(job: ModelJob): void {
    job.state = 'dead'
    job.letter = 'pending'
  }
}
