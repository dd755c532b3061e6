/**
 * A store with channels, consumers, jobs and their letters in it, written row by row: for tests of what counts them, without anything
 * that delivers. Time stands still.
 */
import { type Instant, instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { type Xid, Xids } from '../../src/core/xid.ts'
import { STATUS } from '../../src/letters/letter.ts'
import type { Registers } from '../../src/letters/registers.ts'
import { newRegisters } from '../../src/letters/registers.ts'
import { inOffice } from '../../src/letters/work.ts'
import { MIGRATIONS } from '../../src/migrations.ts'
import { Tallies, type TallyName } from '../../src/sources/webhooks/numbers/tallies.ts'
import { JOB, type JobState, queueOfConsumer, WEBHOOKS } from '../../src/sources/webhooks/webhook.ts'
import { type Database, type Integer, sql } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrations.ts'
import { openDatabase } from '../../src/store/open.ts'
import { captureNew } from './capture.ts'
import type { FreshStore, StoreKind } from './stores.ts'

const insertChannel = sql(
  'test.insertChannel',
  `INSERT INTO bartleby.webhook_channels (id, number, channel_id, name, token, created_at, updated_at)
   VALUES ($1, $2, $3, $4, 'token', $5, $5)`,
)
const insertConsumer = sql(
  'test.books.insertConsumer',
  `INSERT INTO bartleby.webhook_consumers
     (id, number, channel, consumer_id, name, token, callback_url, pulls, created_at, updated_at)
   VALUES ($1, $2, $3, $4, $5, 'token', $6, 0, $7, $7)`,
)
const insertMessage = sql(
  'test.books.insertMessage',
  `INSERT INTO bartleby.webhook_messages
     (id, channel, message_id, producer, created_at, received_at, scheduled_for, next_try_at, priority, first_job, jobs,
      content_type, headers, payload)
   VALUES ($1, $2, $1, 'producer', $3, $4, $5, $6, 0, $7, $8, 'text/plain', '[]', $9)`,
)
const insertJob = sql(
  'test.books.insertJob',
  `INSERT INTO bartleby.webhook_jobs (created_at, changed_at, priority, consumer, state, id, message, exhausted)
   VALUES ($1, $1, 0, $2, $3, $4, $5, 1)`,
)
const moveJob = sql(
  'test.moveJob',
  'UPDATE bartleby.webhook_jobs SET state = $2, changed_at = $3, letter = $4 WHERE id = $1',
)
const deleteJob = sql('test.deleteJob', 'DELETE FROM bartleby.webhook_jobs WHERE id = $1')
const deleteLetter = sql('test.deleteLetter', 'DELETE FROM bartleby.letters WHERE id = $1 RETURNING drawer')
const deleteConsumer = sql('test.deleteConsumer', 'DELETE FROM bartleby.webhook_consumers WHERE number = $1')
const renameConsumer = sql(
  'test.renameConsumer',
  'UPDATE bartleby.webhook_consumers SET name = $2 WHERE number = $1',
)

export interface BookedConsumer {
  readonly id: Xid
  readonly number: number
  readonly channel: BookedChannel
  readonly consumerId: string
}

export interface BookedChannel {
  readonly id: Xid
  readonly number: number
  readonly channelId: string
}

export interface BookedJob {
  readonly id: Xid
  readonly consumer: BookedConsumer
  readonly state: JobState
  readonly letter: bigint | null
}

const SECOND = 1_000_000n

export class WebhookBooks {
  readonly db: Database
  readonly place: FreshStore
  readonly clock = new TestClock()
  readonly registers: Registers = newRegisters()
  readonly xids = new Xids(this.clock)
  #numbers = 0

  private constructor(db: Database, place: FreshStore) {
    this.db = db
    this.place = place
    this.clock.freeze(instant(1_800_000_000_000_000n))
  }

  static async open(store: StoreKind): Promise<WebhookBooks> {
    const place = await store.fresh()
    const db = openDatabase(place.url, { poolSize: 4 })
    await migrate(db, MIGRATIONS)
    return new WebhookBooks(db, place)
  }

  async close(): Promise<void> {
    await this.db.close()
    await this.place.dispose()
  }

  /** Lets seconds pass. */
  pass(seconds: number): Instant {
    this.clock.advance(BigInt(seconds) * SECOND)
    return this.clock.now()
  }

  async channel(channelId: string, name = channelId): Promise<BookedChannel> {
    const channel = { id: this.xids.next(), number: ++this.#numbers, channelId }
    await this.db.session('test', (session) =>
      session.run(insertChannel, channel.id, channel.number, channelId, name, this.clock.now()),
    )
    return channel
  }

  async consumer(channel: BookedChannel, consumerId: string, name = consumerId): Promise<BookedConsumer> {
    const consumer = { id: this.xids.next(), number: ++this.#numbers, channel, consumerId }
    const url = `http://someone:secret@host.test/${consumer.number}?key=secret`
    await this.db.session('test', (session) =>
      session.run(
        insertConsumer,
        consumer.id,
        consumer.number,
        channel.number,
        consumerId,
        name,
        url,
        this.clock.now(),
      ),
    )
    return consumer
  }

  async rename(consumer: BookedConsumer, name: string): Promise<void> {
    await this.db.session('test', (session) => session.run(renameConsumer, consumer.number, name))
  }

  async remove(consumer: BookedConsumer): Promise<void> {
    await this.db.session('test', (session) => session.run(deleteConsumer, consumer.number))
  }

  /** A message with a job for each of the consumers, in flight. */
  async message(channel: BookedChannel, consumers: readonly BookedConsumer[]): Promise<readonly BookedJob[]> {
    const id = this.xids.next()
    const jobs = consumers.map(
      (consumer): BookedJob => ({ id: this.xids.next(), consumer, state: JOB.inFlight, letter: null }),
    )
    const now = this.clock.now()
    await this.db.transaction('test', async (tx) => {
      const first = jobs[0]?.id ?? null
      const values = [id, channel.number, now, now, null, null, first, jobs.length, Buffer.from('body')]
      await tx.run(insertMessage, ...values)
      const tallies = new Tallies()
      tallies.add(channel.number, 'dispatched', 1)
      for (const job of jobs) {
        await tx.run(insertJob, now, job.consumer.number, job.state, job.id, id)
        tallies.moved(job.consumer.number, null, job.state)
      }
      tallies.write(tx)
    })
    return jobs
  }

  /** One job of a message of its own. */
  async job(consumer: BookedConsumer): Promise<BookedJob> {
    const [job] = await this.message(consumer.channel, [consumer])
    if (job === undefined) throw new Error('there is no job')
    return job
  }

  /** A message that waits for its time, or was dispatched when it had come. */
  async scheduled(channel: BookedChannel, at: Instant, tally: TallyName = 'scheduled'): Promise<void> {
    const now = this.clock.now()
    const waits = tally === 'scheduled'
    const times = waits ? [null, at, at] : [now, at, null]
    await this.db.transaction('test', async (tx) => {
      await tx.run(
        insertMessage,
        this.xids.next(),
        channel.number,
        now,
        ...times,
        null,
        0,
        Buffer.from('body'),
      )
      const tallies = new Tallies()
      tallies.add(channel.number, tally, 1)
      if (!waits) tallies.add(channel.number, 'dispatched', 1)
      tallies.write(tx)
    })
  }

  /** Puts a job into a state other than dead; its letter stays what it is. */
  async move(job: BookedJob, state: Exclude<JobState, typeof JOB.dead>): Promise<BookedJob> {
    await this.db.transaction('test', async (tx) => {
      const tallies = new Tallies()
      tallies.moved(job.consumer.number, job.state, state)
      await tx.run(moveJob, job.id, state, this.clock.now(), job.letter)
      tallies.write(tx)
    })
    return { ...job, state }
  }

  /** A job dies: it is dead, and has a letter. */
  async die(job: BookedJob, errorMessage = 'it failed'): Promise<BookedJob> {
    const { consumer } = job
    const letter = await inOffice(this.db, this.clock, 'test.die', async (work) => {
      const id = await captureNew(work, this.registers, {
        source: WEBHOOKS,
        engine: WEBHOOKS,
        instanceId: job.id,
        correlationId: job.id,
        sourceId: job.id,
        originalQueue: queueOfConsumer(consumer.channel.channelId, consumer.consumerId),
        encoding: '',
        kind: consumer.channel.channelId,
        reference: '',
        headers: null,
        payload: Buffer.from('body'),
        dequeueCount: 1,
        firstFailureAt: work.now,
        lastFailureAt: work.now,
        errorClass: 'HttpError',
        errorMessage,
        errorStack: null,
        failedBy: null,
        actor: 'courier',
      })
      const tallies = new Tallies()
      tallies.moved(consumer.number, job.state, JOB.dead)
      await work.tx.run(moveJob, job.id, JOB.dead, work.now, id)
      tallies.write(work.tx)
      return id
    })
    return { ...job, state: JOB.dead, letter }
  }

  /** Removes a dead job and its letter. */
  async erase(job: BookedJob): Promise<void> {
    await inOffice(this.db, this.clock, 'test.erase', async (work) => {
      const [row] = await work.tx.rows<{ drawer: Integer }>(deleteLetter, job.letter ?? 0)
      await work.tx.run(deleteJob, job.id)
      work.letters.add(Number(row?.drawer), STATUS.Pending, -1)
      work.letters.add(Number(row?.drawer), STATUS.removed, 1)
    })
  }
}
