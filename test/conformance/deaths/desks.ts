/** Places where things die, each with a hand on what is about to: what the suite of the one death asks of every source. */
import type { Clock } from '../../../src/core/clock.ts'
import { silentLog } from '../../../src/core/log.ts'
import { xid } from '../../../src/core/xid.ts'
import { type Letter, type LetterStatus, letterId } from '../../../src/letters/letter.ts'
import { Letters } from '../../../src/letters/letters.ts'
import { readLetterById } from '../../../src/letters/lists/detail.ts'
import { lockLetters } from '../../../src/letters/locked.ts'
import { newRegisters } from '../../../src/letters/registers.ts'
import type { FailureReport } from '../../../src/letters/reports/report.ts'
import { inOffice, officeRuns } from '../../../src/letters/work.ts'
import { EngineDirectory } from '../../../src/queues/engines/engine-directory.ts'
import { recordEngineQueues } from '../../../src/queues/engines/engine-queues.ts'
import { StoreQueues } from '../../../src/queues/queues.ts'
import type { RawRecord } from '../../../src/sources/kafka/event.ts'
import { reassign } from '../../../src/sources/kafka/reassign.ts'
import { settleJobs } from '../../../src/sources/webhooks/jobs/settle-jobs.ts'
import { CountChanges } from '../../../src/sources/webhooks/numbers/counts.ts'
import { JOB } from '../../../src/sources/webhooks/webhook.ts'
import { type Database, sql } from '../../../src/store/database.ts'
import { openDatabase } from '../../../src/store/open.ts'
import { KafkaWorld } from '../../world/kafka/world.ts'
import { LetterStore } from '../../world/letter-store.ts'
import { OutboxOffice } from '../../world/outbox-office.ts'
import type { StoreKind } from '../../world/stores.ts'
import { claimOf, WebhookWorld } from '../../world/webhooks/world.ts'

/** Something that is about to die. */
export interface Doomed {
  /** It dies, and the office is told. Dying again after that changes nothing. */
  die(): Promise<unknown>
  /** The same by another server. */
  dieElsewhere(): Promise<unknown>
  /** Whether it is as it was before it died. */
  isAlive(): Promise<boolean>
}

export interface DeathDesk {
  readonly db: Database
  readonly clock: Clock & { advance(us: bigint): void }
  readonly letters: Letters
  /** Something new; all that die here are of one instance, where they have any. */
  doomed(): Promise<Doomed>
  /** What a letter stands for is sent back, and about to die again. */
  sentBack(letter: Letter): Promise<Doomed>
  /** The same although the letter was given up meanwhile, or nobody did anything with it. */
  givenUp?(letter: Letter, status: LetterStatus): Promise<Doomed>
  /** What a letter stands for was sent back by the office, and is done now. */
  confirmed?(letter: Letter): Promise<unknown>
  /** All that comes before a consumer of its dead queue, or its message itself, says that it is done; gives what says so. */
  completed?(letter: Letter): Promise<() => Promise<unknown>>
  /** It turns out to come from another queue. */
  refiled?(letter: Letter): Promise<unknown>
  /** The users of its source erase it. */
  erased?(letter: Letter): Promise<unknown>
  close(): Promise<void>
}

/** What not every source has. */
export type Hook = 'givenUp' | 'confirmed' | 'completed' | 'refiled' | 'erased'

/** What a desk has, where its source does not say that it lacks it. */
export function hookOf<H extends Hook>(desk: DeathDesk, hook: H): NonNullable<DeathDesk[H]> {
  const found = desk[hook]
  if (found === undefined) throw new Error(`the desk has no '${hook}', and does not say why`)
  return found
}

const ids = sql('test.deaths.letters', 'SELECT id FROM bartleby.letters ORDER BY id', { bigints: true })

/** All letters, in the order of their numbers. */
export const lettersIn = (db: Database): Promise<Letter[]> =>
  db.session('test', async (session) => {
    const rows = await session.rows<{ id: bigint }>(ids)
    const letters = await Promise.all(rows.map(({ id }) => readLetterById(session, letterId(id))))
    return letters.flatMap((letter) => letter ?? [])
  })

const SENT = { edit: null, notes: null, actor: 'nell' } as const

/** A store, and another server's connection to it; SQLite has one for all. */
async function twoServers<S extends { readonly db: Database }>(
  kind: StoreKind,
  open: (kind: StoreKind) => Promise<S>,
): Promise<{ readonly store: S; readonly elsewhere: Database; close(): Promise<void> }> {
  let url = ''
  const store = await open({
    name: kind.name,
    async fresh() {
      const place = await kind.fresh()
      url = place.url
      return place
    },
  })
  if (store.db.dialect === 'sqlite') return { store, elsewhere: store.db, close: async () => {} }
  const elsewhere = openDatabase(url, { poolSize: 4 })
  return { store, elsewhere, close: () => elsewhere.close() }
}

const registers = newRegisters

/** Leases what a queue holds, and completes it. */
async function completeAll(store: LetterStore, queueName: string): Promise<void> {
  const { partition, items } = await store.lease(queueName)
  await store.queues.complete({ queueName, partition, ids: items.map(({ id }) => id) })
}

const queues =
  (engine: string | null) =>
  async (kind: StoreKind): Promise<DeathDesk> => {
    const { store, elsewhere, close } = await twoServers(kind, (at) => LetterStore.open(at))
    const { db, clock, letters } = store
    await store.createQueue('jobs', 1)
    if (engine !== null) await recordEngineQueues(db, silentLog, [{ queue: 'jobs', engine }])
    const other = new StoreQueues(elsewhere, clock, silentLog, {
      registers: registers(),
      runs: officeRuns(elsewhere, clock, silentLog),
      maxPendingRequests: 1_000,
      dedupeWindowUs: 300_000_000n,
    })
    const leased = async (): Promise<Doomed> => {
      const { partition, items } = await store.lease('jobs')
      const dying = items.map(({ id }) => ({ id, dead: true, errorMessage: 'no key' }))
      const ask = { queueName: 'jobs', partition, items: dying }
      return {
        die: () => store.queues.retry(ask),
        dieElsewhere: () => other.retry(ask),
        isAlive: async () => (await store.queues.listItems({ queueName: 'jobs', partition })).length === 1,
      }
    }
    return {
      ...{ db, clock, letters },
      async doomed() {
        const items = [{ payload: '{"instanceId":"one"}' }]
        await store.queues.produce({ queueName: 'jobs', items, requestTimeout: '1m' })
        return leased()
      },
      async sentBack(letter) {
        await letters.retry(letter, SENT)
        return leased()
      },
      confirmed: () => completeAll(store, 'jobs'),
      completed: async (letter) => () => completeAll(store, letter.deadQueue ?? ''),
      async close() {
        await other.stop()
        await close()
        await store.close()
      },
    }
  }

const webhooks =
  (type: 'push' | 'pull') =>
  async (kind: StoreKind): Promise<DeathDesk> => {
    const store = await WebhookWorld.open(kind)
    const { db, letters } = store
    const consumer = await store.consumer(await store.channel(), { type })
    const inFlight = async (id: ReturnType<typeof xid>): Promise<Doomed> => {
      await store.take([id])
      return {
        die: () => store.bury([id]),
        dieElsewhere: () => store.bury([id]),
        isAlive: async () => (await store.job(id))?.state === JOB.inFlight,
      }
    }
    return {
      ...{ db, letters, clock: store.clock },
      doomed: async () => inFlight(await store.one(consumer)),
      async sentBack(letter) {
        await letters.retry(letter, SENT)
        return inFlight(xid(letter.sourceId))
      },
      async confirmed(letter) {
        const id = xid(letter.sourceId)
        if (type === 'pull') {
          for (const state of ['INFLIGHT', 'DELIVERED']) await store.jobs.move(consumer, id, state, 0)
          return
        }
        await store.take([id])
        // As a courier settles what it delivered.
        await inOffice(db, store.clock, 'test.delivered', async (work) => {
          await lockLetters(work.tx, [letter.id])
          const counts = new CountChanges()
          const delivered = { to: JOB.delivered, dueAt: null, failure: null } as const
          await settleJobs(work, store.registers, counts, [
            { id, claim: claimOf(id), letter: letter.id, ...delivered },
          ])
          counts.write(work.tx)
        })
      },
      erased: ({ sourceId }) => store.jobs.erase(consumer, sourceId),
      close: () => store.close(),
    }
  }

const outbox =
  (isElsewhere: boolean) =>
  async (kind: StoreKind): Promise<DeathDesk> => {
    const office = await OutboxOffice.open({
      name: 'deaths',
      office: kind,
      elsewhere: isElsewhere ? kind : null,
    })
    const { letters, table } = office
    const { db, clock } = office.store
    await office.reconcile()
    const rejecting = async (): Promise<Doomed> => {
      office.deliver = async () => {
        throw new Error('no key')
      }
      await office.deliverOnly()
      const due = async () =>
        Number((await table.query('SELECT 1 FROM outbox_messages WHERE letter_due')).length)
      return {
        die: () => office.reconcile(),
        dieElsewhere: () => office.secondClerk((reconcile) => reconcile()),
        // Dead by its own side, and marked: nobody has told the office.
        isAlive: async () => (await due()) === 1,
      }
    }
    return {
      ...{ db, clock, letters },
      async doomed() {
        await table.insert({ payload: '{}' })
        return rejecting()
      },
      async sentBack(letter) {
        await letters.retry(letter, SENT)
        return rejecting()
      },
      async confirmed() {
        office.deliver = async () => {}
        await office.dispatch()
      },
      // It arrived, and before the office was told somebody made its letter pending again.
      async completed(letter) {
        await letters.retry(letter, SENT)
        office.deliver = async () => {}
        await office.deliverOnly()
        await letters.change(letter, { status: 'Pending', notes: null, actor: 'nell' })
        return () => office.reconcile()
      },
      close: () => office.close(),
    }
  }

const CALLER = { actor: 'nell', requestId: '4e2ad5ec-7b8d-4f9a-9d7a-7a0c5f3e9b11' }

async function kafka(kind: StoreKind): Promise<DeathDesk> {
  const store = await KafkaWorld.open(kind)
  const { db, clock, letters } = store
  const other = db.dialect === 'sqlite' ? store.records : store.anotherIntake()
  const read = (record: RawRecord): Doomed => {
    let before = 0
    return {
      die: () => store.take(record),
      dieElsewhere: () => other.prepare([record])(),
      // Whoever reads the topic finds it again; the office must not have a trace of it.
      async isAlive() {
        const received = (await store.partitions()).reduce((sum, partition) => sum + partition.received, 0)
        const isSame = before === 0 || received === before
        before = received
        return isSame
      },
    }
  }
  return {
    ...{ db, clock, letters },
    doomed: async () => read(store.record()),
    async sentBack({ id }) {
      const minted = await store.publish(await store.again({ letterId: id }))
      clock.advance(1_000n)
      return read(store.record({ originalEventId: minted }))
    },
    async refiled({ id }) {
      const { dlqId } = await store.again({ letterId: id })
      await reassign(store, dlqId, { service: 'billing', topic: 'orders' }, CALLER)
    },
    async givenUp({ id }, status) {
      const event = await store.again({ letterId: id })
      const minted = await store.publish(event)
      await store.change(event, 'Pending')
      if (status !== 'Pending') await store.change(event, status)
      clock.advance(1_000n)
      return read(store.record({ originalEventId: minted }))
    },
    close: () => store.close(),
  }
}

async function reports(kind: StoreKind): Promise<DeathDesk> {
  const { store, elsewhere, close } = await twoServers(kind, (at) => LetterStore.open(at))
  const { db, clock, letters } = store
  await store.createQueue('hmac-rotation-queue')
  const other = new Letters(elsewhere, clock, {
    registers: registers(),
    runs: officeRuns(elsewhere, clock, silentLog),
    sources: new Map([['http', store.queues.letterSource('http')]]),
    engines: new EngineDirectory({ context: 'publisher' }),
  })
  const reported = (report: FailureReport): Doomed => ({
    die: () => letters.capture(report),
    dieElsewhere: () => other.capture(report),
    isAlive: async () => true,
  })
  return {
    ...{ db, clock, letters },
    doomed: async () => reported(store.report({ instanceId: 'one' })),
    async sentBack(letter) {
      await letters.retry(letter, SENT)
      clock.advance(1_000n)
      return reported(store.report({ instanceId: 'one', sourceId: letter.sourceId }))
    },
    confirmed: () => completeAll(store, 'hmac-rotation-queue'),
    async givenUp(letter, status) {
      if (status !== 'Pending') await letters.change(letter, { status, notes: null, actor: 'nell' })
      clock.advance(1_000n)
      return reported(store.report({ instanceId: 'one', sourceId: letter.sourceId }))
    },
    async close() {
      await close()
      await store.close()
    },
  }
}

/** Why a source lacks what others have: these tests are skipped for it, and no others. */
export type Lacks = Readonly<Partial<Record<Hook, string>>>

const LIVES_ONCE = 'what was sent back is taken back or at an end when its letter is given up'
const KNOWS_WHENCE = 'only records of Kafka may name another service than that of their topic'
const OWN_QUEUE = 'its letters lie in no dead queue'
const KEEPS = 'nobody but users of webhooks erases what is pending'

interface DeathPlace {
  readonly of: string
  readonly open: (kind: StoreKind) => Promise<DeathDesk>
  readonly lacks: Lacks
}

const QUEUES_LACK: Lacks = { givenUp: LIVES_ONCE, refiled: KNOWS_WHENCE, erased: KEEPS }
const WEBHOOKS_LACK: Lacks = { givenUp: LIVES_ONCE, completed: OWN_QUEUE, refiled: KNOWS_WHENCE }
const OUTBOXES_LACK: Lacks = QUEUES_LACK

export const DEATHS: readonly DeathPlace[] = [
  { of: 'a queue', open: queues(null), lacks: QUEUES_LACK },
  { of: 'the queue of an engine', open: queues('hmac'), lacks: QUEUES_LACK },
  { of: 'webhooks that are pushed', open: webhooks('push'), lacks: WEBHOOKS_LACK },
  { of: 'webhooks that are pulled', open: webhooks('pull'), lacks: WEBHOOKS_LACK },
  { of: 'an outbox in the store', open: outbox(false), lacks: OUTBOXES_LACK },
  { of: 'an outbox in another database', open: outbox(true), lacks: OUTBOXES_LACK },
  {
    of: 'Kafka',
    open: kafka,
    lacks: {
      confirmed: 'nobody tells what became of a record that was read again',
      completed: OWN_QUEUE,
      erased: KEEPS,
    },
  },
  { of: 'reports', open: reports, lacks: { completed: OWN_QUEUE, refiled: KNOWS_WHENCE, erased: KEEPS } },
]
