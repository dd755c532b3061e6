/**
 * An office with webhooks, and everything that knows how many of their jobs are dead beside each other: what the status endpoints
 * answer, the jobs and the letters themselves, counted. Its clock stands still, and counts are folded only when a test says so:
 * the test has the lock of the office's own folders from the start.
 */
import { expect } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import { silentLog } from '../../../src/core/log.ts'
import { TestClock } from '../../../src/core/test-clock.ts'
import type { Xid } from '../../../src/core/xid.ts'
import { STATUS } from '../../../src/letters/letter.ts'
import { letterCounter } from '../../../src/letters/numbers/counts.ts'
import { newRegisters } from '../../../src/letters/registers.ts'
import { type OfficeRuns, officeRuns } from '../../../src/letters/work.ts'
import { MIGRATIONS } from '../../../src/migrations.ts'
import { Office } from '../../../src/office.ts'
import { webhookCounter } from '../../../src/sources/webhooks/numbers/counts.ts'
import { readDeadCounts } from '../../../src/sources/webhooks/numbers/dead-counts.ts'
import { type WebhookOptions, webhookSettings } from '../../../src/sources/webhooks/settings.ts'
import {
  type Channel,
  type Consumer,
  type ConsumerType,
  JOB,
  WEBHOOKS,
} from '../../../src/sources/webhooks/webhook.ts'
import { Webhooks } from '../../../src/sources/webhooks/webhooks.ts'
import { Announcer } from '../../../src/store/announcer.ts'
import {
  type Database,
  type Integer,
  type Session,
  type Statement,
  sql,
  type Value,
} from '../../../src/store/database.ts'
import { type Fold, foldCounts } from '../../../src/store/fold.ts'
import { leasedLock } from '../../../src/store/lock.ts'
import { migrate } from '../../../src/store/migrations.ts'
import { openDatabase } from '../../../src/store/open.ts'
import { expectVerified, START } from '../store-world.ts'
import type { FreshStore, StoreKind } from '../stores.ts'
import { jobRows } from './rows.ts'

/** A job dies of its first failure, and may then be deleted; bulk acts take several transactions. */
export const SUDDEN: WebhookOptions = {
  delivery: { maxRetry: 0, breaker: { failures: 0 } },
  dlq: { batchSize: 3 },
}

const YEARS_US = 1_000_000_000_000_000n
export const FOLDS: readonly Fold[] = [letterCounter, webhookCounter]

/** Dead jobs per consumer, counted one by one, and their letters. */
const countAll = sql(
  'test.countDeadJobs',
  `SELECT consumer.number, consumer.consumer_id, channel.channel_id,
     (SELECT count(*) FROM bartleby.webhook_jobs AS job WHERE job.consumer = consumer.number AND job.state = ${JOB.dead}) AS jobs,
     (SELECT count(*) FROM bartleby.letters AS letter JOIN bartleby.webhook_jobs AS job ON job.id = letter.source_id
      WHERE letter.engine = '${WEBHOOKS}' AND letter.status = ${STATUS.Pending} AND job.consumer = consumer.number) AS letters
   FROM bartleby.webhook_consumers AS consumer
   JOIN bartleby.webhook_channels AS channel ON channel.number = consumer.channel`,
)
const countPending = sql(
  'test.countPendingLetters',
  `SELECT count(*) AS letters FROM bartleby.letters WHERE engine = '${WEBHOOKS}' AND status = ${STATUS.Pending}`,
)
const countDeltas = sql('test.countAllDeltas', {
  postgres: `SELECT (SELECT count(*) FROM bartleby.letter_changes) + (SELECT count(*) FROM bartleby.webhook_deltas) AS found`,
  sqlite: 'SELECT 0 AS found',
})
const countLetterDeltas = sql(
  'test.countLetterDeltas',
  'SELECT count(*) AS found FROM bartleby.letter_changes',
)
const readPendingTotal = sql(
  'test.pendingTotal',
  `SELECT sum(letters) AS found FROM bartleby.place_totals
   WHERE status = 0 AND place IN (SELECT id FROM bartleby.places WHERE queue = $1)`,
)
const readLastDrawer = sql('test.lastDrawer', 'SELECT max(id) AS found FROM bartleby.drawers')
const plant = sql(
  'test.plantDrift',
  `UPDATE bartleby.place_totals SET letters = letters + $2
   WHERE status = 0 AND place IN (SELECT id FROM bartleby.places WHERE queue = $1)`,
)
const plantUnfolded = sql('test.plantUnfoldedDrift', {
  postgres: `INSERT INTO bartleby.letter_changes (place, drawer, status, at, letters, last_seen_at)
               SELECT place, id, 0, 0, $2, 0 FROM bartleby.drawers WHERE queue = $1`,
  sqlite: `UPDATE place_totals SET letters = letters + $2
             WHERE status = 0 AND place IN (SELECT id FROM places WHERE queue = $1)`,
})

/** Changes of counts that are not folded, of letters and of webhooks. */
export const unfoldedIn = (session: Session): Promise<number> => numberOf(session, countDeltas)

async function numberOf(session: Session, statement: Statement, ...values: Value[]): Promise<number> {
  const [row] = await session.rows<{ found: Integer | null }>(statement, ...values)
  return Number(row?.found)
}

/** What is known about the dead jobs of one consumer at one moment. */
export interface Sheet {
  readonly channelId: string
  readonly consumerId: string
  /** What the status endpoint tells; null when it does not list the consumer. */
  readonly counted: number | null
  /** Jobs, one by one. */
  readonly jobs: number
  /** Their pending letters, one by one. */
  readonly letters: number
}

/** All consumers at the moment of the session, and the pending letters of all. */
export async function readSheets(
  session: Session,
): Promise<{ readonly sheets: readonly Sheet[]; readonly pending: number }> {
  const rows = await session.rows<{
    number: Integer
    channel_id: string
    consumer_id: string
    jobs: Integer
    letters: Integer
  }>(countAll)
  const [all] = await session.rows<{ letters: Integer }>(countPending)
  const counts = new Map((await readDeadCounts(session)).map((each) => [each.consumer, each.deadCount]))
  const sheets = rows.map((row) => ({
    channelId: row.channel_id,
    consumerId: row.consumer_id,
    counted: counts.get(Number(row.number)) ?? null,
    jobs: Number(row.jobs),
    letters: Number(row.letters),
  }))
  return { sheets, pending: Number(all?.letters) }
}

/** The books are exact at one moment: what is told is what is there, of every consumer. Gives the sheets. */
export async function expectExact(db: Database): Promise<readonly Sheet[]> {
  const { sheets, pending } = await db.snapshot('test', readSheets)
  expect(sheets.map((sheet) => ({ ...sheet, counted: sheet.counted ?? 0, letters: sheet.letters }))).toEqual(
    sheets.map((sheet) => ({ ...sheet, counted: sheet.jobs, letters: sheet.jobs })),
  )
  expect(pending).toBe(sheets.reduce((sum, { jobs }) => sum + jobs, 0))
  return sheets
}

export interface CountedOfficeOptions {
  readonly webhooks?: WebhookOptions
  /** Left out: the test folds. */
  readonly foldsByItself?: boolean
}

export class CountedOffice {
  readonly kind: StoreKind
  readonly place: FreshStore
  readonly clock = new TestClock()
  /** A way into the store beside the office. */
  readonly db: Database
  readonly settings: WebhookOptions
  readonly #offices: Office[] = []

  private constructor(kind: StoreKind, place: FreshStore, settings: WebhookOptions) {
    this.kind = kind
    this.place = place
    this.db = openDatabase(place.url, { poolSize: 6 })
    this.settings = settings
    this.clock.freeze(START)
  }

  static async open(kind: StoreKind, options: CountedOfficeOptions = {}): Promise<CountedOffice> {
    const { webhooks = SUDDEN, foldsByItself = false } = options
    const house = new CountedOffice(kind, await kind.fresh(), webhooks)
    const { db, clock } = house
    await migrate(db, MIGRATIONS)
    if (!foldsByItself)
      for (const { lock } of FOLDS) await leasedLock(db, clock, lock, 'the test').take(YEARS_US)
    await house.another()
    return house
  }

  async close(): Promise<void> {
    for (const office of this.#offices) await office.close()
    await this.db.close()
    await this.place.dispose()
  }

  get office(): Office {
    return this.#offices[0] ?? expect.fail('there is no office')
  }

  /** Another office on the same store. */
  async another(clock: TestClock = this.clock): Promise<Office> {
    const office = await Office.open({ store: this.place.url, clock, webhooks: this.settings })
    this.#offices.push(office)
    return office
  }

  /** Webhooks on a store that is this one's, or stands before it. Nothing of them is started. */
  webhooksOn(db: Database): Webhooks {
    return this.serverOn(db).webhooks
  }

  /** The same with the runs that its calls begin; they are to be stopped. */
  serverOn(db: Database): { readonly runs: OfficeRuns; readonly webhooks: Webhooks } {
    const runs = officeRuns(db, this.clock, silentLog)
    const webhooks = new Webhooks({
      db,
      clock: this.clock,
      log: silentLog,
      registers: newRegisters(),
      runs,
      announcer: new Announcer(db, silentLog),
      settings: webhookSettings(this.settings),
    })
    return { runs, webhooks }
  }

  /** Lets time pass. */
  pass(us: bigint): Promise<void> {
    return this.office.advanceClock(us)
  }

  channel(channelId: string): Promise<Channel> {
    return this.office.webhooks.channels.put(channelId, { name: null, token: 'ctok' }, null)
  }

  consumer(channel: Channel, consumerId: string, type: ConsumerType = 'pull'): Promise<Consumer> {
    const request = { name: null, token: 'ktok', callbackUrl: 'http://127.0.0.1:9/hook', type }
    return this.office.webhooks.consumers.put(channel, consumerId, request, null)
  }

  /** A message for all consumers of a channel; nobody is asked who sent it. Gives its id. */
  async broadcast(channel: Channel, webhooks: Webhooks = this.office.webhooks): Promise<string> {
    const content = { payload: Buffer.from('body'), contentType: 'text/plain', priority: 0, headers: [] }
    const sender = { channel: channel.number, channelId: channel.channelId, producer: channel.id }
    const draft = { messageId: null, content, scheduledFor: null }
    return (await webhooks.broadcasts.accept(sender, draft)).messageId
  }

  /** A job of a pull consumer, of a new message, in flight. */
  async job(channel: Channel, consumer: Consumer, webhooks: Webhooks = this.office.webhooks): Promise<Xid> {
    const message = await this.broadcast(channel, webhooks)
    const jobs = await this.db.session('test', (session) => jobRows(session, { consumer: consumer.number }))
    const { id } = jobs.find(({ messageId }) => messageId === message) ?? expect.fail('there is no job')
    await webhooks.jobs.move(consumer, id, 'INFLIGHT', 0)
    return id
  }

  /** A dead job of a pull consumer. */
  async dead(channel: Channel, consumer: Consumer, webhooks: Webhooks = this.office.webhooks): Promise<Xid> {
    const id = await this.job(channel, consumer, webhooks)
    await webhooks.jobs.move(consumer, id, 'DEAD', 0)
    return id
  }

  fold(db: Database = this.db): Promise<void> {
    return foldAll(db, this.clock)
  }

  /** Changes of the counts of letters that are not folded. */
  unfolded(): Promise<number> {
    return this.db.session('test', (session) => numberOf(session, countLetterDeltas))
  }

  /** The folded total of pending letters of a queue. */
  pendingTotal(queue: string): Promise<number> {
    return this.db.session('test', (session) => numberOf(session, readPendingTotal, queue))
  }

  /** Makes the pending letters of a queue so many more, as a mistake would: in its total, or in what is to be folded. */
  plant(queue: string, amount: number, how: 'folded' | 'unfolded' = 'folded'): Promise<number> {
    const statement = how === 'folded' ? plant : plantUnfolded
    return this.db.session('test', (session) => session.run(statement, queue, amount))
  }

  /** Writing the total of the newest drawer fails while `work` is done. */
  async refusingLastTotal(work: () => Promise<void>): Promise<void> {
    const last = await this.db.session('test', (session) => numberOf(session, readLastDrawer))
    const script = (text: string) => this.db.transaction('test', (tx) => this.db.script(tx, text))
    await script(`
      CREATE FUNCTION refuse_total() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no total'; END $$;
      CREATE TRIGGER refuse_total BEFORE INSERT ON bartleby.letter_totals FOR EACH ROW
        WHEN (NEW.drawer = ${last}) EXECUTE FUNCTION refuse_total()`)
    await work()
    await script('DROP FUNCTION refuse_total() CASCADE')
  }

  /** What is known about one consumer, which is exact; the endpoints tell the same. */
  async sheet({ channelId }: Channel, { id, consumerId }: Consumer): Promise<Sheet> {
    const sheets = await expectExact(this.db)
    const found = sheets.find((sheet) => sheet.channelId === channelId && sheet.consumerId === consumerId)
    if (found === undefined) return expect.fail(`there is no consumer ${consumerId} of ${channelId}`)
    const { status } = this.office.webhooks
    const dead = (await status.dead()).consumers.find(
      (each) => each.channelId === channelId && each.consumerId === consumerId,
    )
    const inJobStatus = (await status.jobs())[channelId]?.[id]?.find((entry) => entry.status === 1004)
    expect({ dead: dead?.deadCount ?? null, inJobStatus: inJobStatus?.count ?? 0 }).toEqual({
      dead: found.counted,
      inJobStatus: found.jobs,
    })
    return found
  }

  /** The dead jobs of a consumer, as everybody tells it, at once and when all is folded. */
  async expectDead(channel: Channel, consumer: Consumer, dead: number): Promise<void> {
    expect((await this.sheet(channel, consumer)).jobs).toBe(dead)
    await this.fold()
    expect((await this.sheet(channel, consumer)).jobs).toBe(dead)
  }

  expectVerified(): Promise<void> {
    return expectVerified(this)
  }
}

/** Folds all that is there. Under a lock of its own: nobody has to wait for anybody. */
export async function foldAll(db: Database, clock: Clock): Promise<void> {
  if (db.dialect === 'sqlite') return
  for (const fold of FOLDS)
    await foldCounts(db, { ...fold, lock: `test of ${fold.lock}` }, { clock, owner: 'the test' })
}
