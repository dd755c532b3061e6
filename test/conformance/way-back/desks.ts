/** Places where letters come from, each with a hand on its own side: what the suite of the way back asks of every source. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../../src/core/clock.ts'
import { silentLog } from '../../../src/core/log.ts'
import { TestClock } from '../../../src/core/test-clock.ts'
import { xid } from '../../../src/core/xid.ts'
import type { Letter } from '../../../src/letters/letter.ts'
import type { Letters } from '../../../src/letters/letters.ts'
import { readLetterById } from '../../../src/letters/lists/detail.ts'
import type { LetterSource } from '../../../src/letters/source.ts'
import { Office } from '../../../src/office.ts'
import { recordEngineQueues } from '../../../src/queues/engines/engine-queues.ts'
import { stateName } from '../../../src/sources/kafka/event.ts'
import { kafkaLetterSource } from '../../../src/sources/kafka/source.ts'
import { outboxLetterSource } from '../../../src/sources/outbox/letters/source.ts'
import type { OfficeParts } from '../../../src/sources/source-module.ts'
import { webhookLetterSource } from '../../../src/sources/webhooks/letters/source.ts'
import { JOB } from '../../../src/sources/webhooks/webhook.ts'
import { type Database, sql } from '../../../src/store/database.ts'
import { type Folder, folderSource } from '../../sources/folders.ts'
import { AzureWorld } from '../../world/azure-world.ts'
import { startAzurite, whyNoAzurite } from '../../world/azurite.ts'
import { Desk } from '../../world/kafka/return.ts'
import { LetterStore } from '../../world/letter-store.ts'
import { OutboxOffice } from '../../world/outbox-office.ts'
import type { StoreKind } from '../../world/stores.ts'
import { WebhookWorld } from '../../world/webhooks/world.ts'

/** Where the message of a letter is: with its dead letter, on its way back, or with nobody. */
export type Side = 'dead' | 'on its way' | 'given up'

export interface WayBackDesk {
  readonly db: Database
  readonly clock: Clock
  readonly letters: Letters
  readonly source: LetterSource
  /** How an edited payload fares. */
  readonly takesEdits: boolean
  /** What a letter whose place is gone is refused with. */
  readonly lostCode: string
  /** Whether what was sent back can be taken back. */
  readonly canRecall: boolean
  /** Letters of messages that died, in the order of their deaths. */
  die(count: number): Promise<Letter[]>
  /** What a letter came from is gone: it has no way back. */
  lose(letter: Letter): Promise<void>
  /** Undoes what the store itself would never let happen. */
  find?(letter: Letter): Promise<void>
  side(letter: Letter): Promise<Side>
  /** Somebody works on what was sent back. */
  take(letter: Letter): Promise<void>
  close(): Promise<void>
}

const again = async (db: Database, { id }: Pick<Letter, 'id'>): Promise<Letter> => {
  const letter = await db.session('test', (session) => readLetterById(session, id))
  if (letter === null) throw new Error(`there is no letter ${id}`)
  return letter
}

/** Letters that go back into a queue: of plain queues, of those of an engine, or of what a service reports. */
const queues =
  (source: 'queues' | 'engines' | 'http') =>
  async (kind: StoreKind): Promise<WayBackDesk> => {
    const store = await LetterStore.open(kind)
    const { db, clock, letters } = store
    const engine = source === 'queues' ? source : 'hmac'
    let made = 0
    const holds = async (queueName: string): Promise<boolean> =>
      (await store.queues.listItems({ queueName, partition: 0 })).length > 0
    const dieInQueue = async (queueName: string, payload: string): Promise<void> => {
      if (source === 'engines') await recordEngineQueues(db, silentLog, [{ queue: queueName, engine }])
      await store.queues.produce({ queueName, items: [{ payload }], requestTimeout: '1m' })
      const { partition, items } = await store.lease(queueName)
      const ids = items.map(({ id }) => ({ id, dead: true }))
      await store.queues.retry({ queueName, partition, items: ids })
    }
    return {
      ...{ db, clock, letters, source: store.queues.letterSource(source) },
      ...{ takesEdits: true, lostCode: 'letter_queue_gone', canRecall: true },
      async die(count) {
        const dead: Letter[] = []
        for (let i = 0; i < count; i++) {
          const queueName = `queue-${made++}`
          const payload = `{"n":${i}}`
          await store.createQueue(queueName, 1)
          if (source === 'http')
            await letters.capture(
              store.report({ engine, originalQueue: queueName, payload: Buffer.from(payload) }),
            )
          else await dieInQueue(queueName, payload)
          const [letter] = (await letters.list({ engine, originalQueue: queueName })).items
          if (letter !== undefined) dead.push(await again(db, letter))
        }
        return dead
      },
      async lose({ originalQueue }) {
        const queue = originalQueue ?? ''
        await store.queues.delete({ queueName: queue, force: true })
        // An engine's own queue is made anew when a letter is sent there.
        if (source === 'engines') await recordEngineQueues(db, silentLog, [{ queue, engine: 'another' }])
      },
      async side(letter) {
        if (await holds(letter.originalQueue ?? '')) return 'on its way'
        // What was reported lies in no dead queue.
        const isDead =
          source === 'http'
            ? (await again(db, letter)).status === 'Pending'
            : await holds(`${letter.originalQueue}-dead`)
        return isDead ? 'dead' : 'given up'
      },
      async take({ originalQueue }) {
        await store.lease(originalQueue ?? '')
      },
      close: () => store.close(),
    }
  }

const renameMessage = sql(
  'test.renameMessage',
  `UPDATE bartleby.webhook_messages SET message_id = $2, id = CASE WHEN $3 = 'lost' THEN id || 'lost' ELSE replace(id, 'lost', '') END
   WHERE message_id = $1`,
)

async function webhooks(kind: StoreKind): Promise<WayBackDesk> {
  const store = await WebhookWorld.open(kind)
  const { db, letters } = store
  const channel = await store.channel()
  const consumer = await store.consumer(channel)
  /** Jobs name their message by a number that is none then. */
  const name = async (from: string, to: string): Promise<void> => {
    await db.transaction('test', (tx) => tx.run(renameMessage, from, to, to.startsWith('lost') ? 'lost' : ''))
  }
  return {
    ...{ db, letters, clock: store.clock, source: webhookLetterSource({ onJobs: () => {} }) },
    ...{ takesEdits: false, lostCode: 'letter_job_gone', canRecall: true },
    async die(count) {
      const jobs = await store.deadJobs(consumer, count)
      return Promise.all(jobs.map((job) => store.letter(job)))
    },
    lose: ({ reference }) => name(reference, `lost ${reference}`),
    find: ({ reference }) => name(`lost ${reference}`, reference),
    async side({ sourceId }) {
      const job = await store.job(xid(sourceId))
      if (job === null) return 'given up'
      return job.state === JOB.dead ? 'dead' : 'on its way'
    },
    take: ({ sourceId }) => store.take([xid(sourceId)]),
    close: () => store.close(),
  }
}

const outbox =
  (isElsewhere: boolean) =>
  async (kind: StoreKind): Promise<WayBackDesk> => {
    const office = await OutboxOffice.open({
      name: 'way back',
      office: kind,
      elsewhere: isElsewhere ? kind : null,
    })
    const { letters, table } = office
    const { db, clock } = office.store
    await office.reconcile()
    const rowId = ({ sourceId }: Letter): string => sourceId.split('/')[1] ?? ''
    return {
      ...{ db, clock, letters },
      source: outboxLetterSource(() => office.posts, { dispatch: () => {}, reconcile: () => {} }),
      ...{ takesEdits: true, lostCode: 'letter_row_gone', canRecall: true },
      async die(count) {
        await office.begin()
        for (let i = 0; i < count; i++) await table.insert({ payload: `{"n":${i}}` })
        await office.die()
        const found = await office.list()
        return Promise.all(found.toSorted((a, b) => Number(a.id - b.id)).map((letter) => again(db, letter)))
      },
      async lose(letter) {
        await table.query('DELETE FROM outbox_messages WHERE id = $1', Number(rowId(letter)))
      },
      async side(letter) {
        const row = await table.row(rowId(letter))
        if (row.dead_at === null) return 'on its way'
        return row.processed_at === null ? 'dead' : 'given up'
      },
      async take(letter) {
        const until = table.dialect === 'postgres' ? "now() + interval '100 years'" : '9000000000000000'
        await table.query(
          `UPDATE outbox_messages SET claimed_until = ${until} WHERE id = $1`,
          Number(rowId(letter)),
        )
      },
      close: () => office.close(),
    }
  }

async function kafka(kind: StoreKind): Promise<WayBackDesk> {
  const desk = await Desk.open(kind)
  const { db, clock, letters } = desk
  return {
    ...{ db, clock, letters, source: kafkaLetterSource({ returnWay: () => desk }) },
    ...{ takesEdits: true, lostCode: 'letter_processor_failed', canRecall: false },
    async die(count) {
      desk.decide = () => ({ action: 'publish', change: {} })
      const events = await desk.deadOnes(desk.service(), count)
      return Promise.all(events.map((event) => desk.letter(event)))
    },
    async lose({ id }) {
      const before = desk.decide
      desk.decide = (event) =>
        event.letterId === id ? { action: 'failed', message: 'no way back' } : before(event)
    },
    async side({ id }) {
      const state = stateName((await desk.again({ letterId: id })).state)
      if (state === 'pending') return 'dead'
      return state === 'discarded' ? 'given up' : 'on its way'
    },
    take: async () => {},
    close: () => desk.close(),
  }
}

/** Each letter in a queue of its own, in an account of Azurite. */
async function azure(kind: StoreKind): Promise<WayBackDesk> {
  const azurite = await startAzurite()
  const world = await AzureWorld.open(azurite, kind)
  const { db, clock, letters } = world
  let made = 0
  return {
    ...{ db, clock, letters, source: world.server.source },
    ...{ takesEdits: true, lostCode: 'letter_queue_gone', canRecall: false },
    async die(count) {
      const queues = Array.from({ length: count }, () => `way-back-${made++}`)
      for (const queue of queues) {
        await world.queue(queue).create()
        await world.fail({ OriginalQueue: queue })
      }
      await world.server.round()
      const found = await Promise.all(queues.map((originalQueue) => world.only({ originalQueue })))
      return Promise.all(found.map((letter) => again(db, letter)))
    },
    lose: async ({ originalQueue }) => void (await world.queue(originalQueue ?? '').delete()),
    async side(letter) {
      await world.server.round()
      const key = { partitionKey: letter.engine, rowKey: letter.reference }
      const { Status, ResolutionNotes } = (await world.entity(key)) as Record<
        string,
        { value: string } | undefined
      >
      if (Status?.value === 'Pending') return 'dead'
      return ResolutionNotes?.value === 'Retried' ? 'on its way' : 'given up'
    },
    take: async () => {},
    async close() {
      await world.close()
      await azurite.stop()
    },
  }
}

/** The toy source, in an office of its own. */
async function folders(kind: StoreKind): Promise<WayBackDesk> {
  const fresh = await kind.fresh()
  const path = await mkdtemp(join(tmpdir(), 'bartleby-folder-'))
  const module = folderSource(() => {
    throw new Error('cannot be read')
  })
  let parts: OfficeParts | undefined
  let folder: Folder | undefined
  const office = await Office.open({
    store: fresh.url,
    clock: new TestClock(),
    sources: [
      {
        ...module,
        async open(given) {
          const opened = await module.open(given, { path, everySeconds: 1 })
          parts = given
          folder = opened.face.folder
          // Nothing of it runs but by the hand of a test.
          return { ...opened, services: [] }
        },
      },
    ],
  })
  if (parts === undefined || folder === undefined) throw new Error('the source was not opened')
  const { db } = parts.store
  const toy = folder
  let made = 0
  return {
    ...{ db, clock: office.clock, letters: office.letters, source: toy.source },
    ...{ takesEdits: true, lostCode: 'letter_queue_gone', canRecall: true },
    async die(count) {
      const names = Array.from({ length: count }, () => `message-${made++}`)
      for (const name of names) await writeFile(join(path, name), name)
      await toy.rounds[0].now()
      const found = await Promise.all(
        names.map((correlationId) => office.letters.list({ engine: module.name, correlationId })),
      )
      return Promise.all(found.flatMap(({ items }) => items).map((letter) => again(db, letter)))
    },
    lose: ({ sourceId }) => rename(join(path, '.dead', sourceId), join(path, '.given-up', sourceId)),
    find: ({ sourceId }) => rename(join(path, '.given-up', sourceId), join(path, '.dead', sourceId)),
    async side({ sourceId }) {
      if (toy.has('dead', sourceId)) return 'dead'
      return toy.has('live', sourceId) ? 'on its way' : 'given up'
    },
    take: async ({ sourceId }) => void toy.busy.add(sourceId),
    async close() {
      await office.close()
      await fresh.dispose()
      await rm(path, { recursive: true })
    },
  }
}

export const WAYS_BACK = [
  { of: 'queues', open: queues('queues') },
  { of: 'queues of an engine', open: queues('engines') },
  { of: 'reports', open: queues('http') },
  { of: 'webhooks', open: webhooks },
  { of: 'an outbox in the store', open: outbox(false) },
  { of: 'an outbox in another database', open: outbox(true) },
  { of: 'Kafka', open: kafka },
  ...(whyNoAzurite === null ? [{ of: 'Azure tables', open: azure }] : []),
  { of: 'a source of somebody else', open: folders },
] as const
