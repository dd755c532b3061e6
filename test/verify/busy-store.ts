/**
 * A small store in which everything has happened to letters that can happen, made by the office itself, and closed.
 * Tests take copies of it and break them.
 */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import type { LetterStatus } from '../../src/letters/letter.ts'
import { Office } from '../../src/office.ts'
import { query } from '../world/postgres.ts'
import type { FreshStore } from '../world/stores.ts'

const SECOND_US = 1_000_000n
const ACTOR = 'tester'

/** The numbers of letters, by what became of them. */
export interface Fates {
  /** Pending, and lying in the dead queue since it was captured. */
  readonly lying: bigint
  readonly alsoLying: bigint
  /** Sent back; its item waits in the queue. */
  readonly sent: bigint
  /** Sent back and died again. */
  readonly reopened: bigint
  /** Sent back and completed. */
  readonly confirmed: bigint
  readonly discarded: bigint
  readonly expired: bigint
  readonly restored: bigint
  /** Completed by a consumer of the dead queue. */
  readonly completed: bigint
  /** Reported over HTTP: it lies in no queue. */
  readonly reported: bigint
  /** The id of an item that nothing happened to. */
  readonly item: string
}

/** Fills the empty store at `url`. */
export async function fillStore(url: string): Promise<Fates> {
  const clock = new TestClock()
  clock.freeze(instant(1_800_000_000_000_000n))
  const office = await Office.open({ store: url, clock })
  try {
    const settings = { leaseTimeout: '1m', expireTimeout: '24h', requestedPartitions: 2 }
    await office.queues.create({ ...settings, queueName: 'dead' })
    await office.queues.create({ ...settings, queueName: 'orders', deadQueue: 'dead' })
    await office.queues.create({ ...settings, queueName: 'work', requestedPartitions: 1 })
    return await busyDay(office, clock)
  } finally {
    await office.close()
  }
}

async function busyDay(office: Office, clock: TestClock): Promise<Fates> {
  const { queues, letters } = office
  /** One item lives and dies; the number of its letter and its name. */
  const die = async () => {
    clock.advance(SECOND_US)
    await queues.produce({ queueName: 'orders', items: [{ payload: 'an order', kind: 'order' }] })
    return killNext(office)
  }
  const change = (key: Key, status: LetterStatus) =>
    letters.change(key, { status, notes: 'for the test', actor: ACTOR })
  const retry = (key: Key) => letters.retry(key, { edit: null, notes: null, actor: ACTOR })

  const completed = await die()
  await settleNext(office, 'dead', (batch, id) =>
    queues.complete({ queueName: 'dead', partition: batch.partition, ids: [id] }),
  )
  const confirmed = await die()
  await retry(confirmed)
  await settleNext(office, 'orders', (batch, id) =>
    queues.complete({ queueName: 'orders', partition: batch.partition, ids: [id] }),
  )
  const reopened = await die()
  await retry(reopened)
  await killNext(office)
  const discarded = await die()
  await change(discarded, 'Resolved')
  const expired = await die()
  await change(expired, 'Expired')
  const restored = await die()
  await change(restored, 'Resolved')
  await change(restored, 'Pending')
  const lying = await die()
  const alsoLying = await die()
  const sent = await die()
  await retry(sent)
  const reported = await letters.capture(reportAt(clock))
  await failRuns(office)
  const item = await leaveSome(office, clock)
  return {
    ...{ lying: lying.id, alsoLying: alsoLying.id, sent: sent.id, reopened: reopened.id },
    ...{ confirmed: confirmed.id, discarded: discarded.id, expired: expired.id, restored: restored.id },
    ...{ completed: completed.id, reported: reported.letter.id, item },
  }
}

interface Key {
  readonly id: bigint
  readonly engine: string
  readonly rowKey: string
}

type Batch = Awaited<ReturnType<Office['queues']['lease']>>

async function settleNext(
  { queues }: Office,
  queueName: string,
  settle: (batch: Batch, id: string) => Promise<void>,
): Promise<void> {
  const batch = await queues.lease({ queueName, clientId: ACTOR, batchSize: 1 })
  const [item] = batch.items
  if (item === undefined) throw new Error(`nothing was leased from '${queueName}'`)
  await settle(batch, item.id)
}

/** The next item of the queue is rejected; the letter of that. */
async function killNext(office: Office): Promise<Key> {
  await settleNext(office, 'orders', ({ partition }, id) =>
    office.queues.retry({ queueName: 'orders', partition, items: [{ id, dead: true }] }),
  )
  const { items } = await office.letters.list({ status: 'Pending', originalQueue: 'orders' }, { limit: 1 })
  const [letter] = items
  if (letter === undefined) throw new Error('the item that died has no letter')
  return letter
}

/** A worker fails on two items: one is tried again, the other dies of it. */
async function failRuns({ queues }: Office): Promise<void> {
  await queues.produce({ queueName: 'work', items: [{ payload: 'first' }, { payload: 'second' }] })
  const { partition, items } = await queues.lease({ queueName: 'work', clientId: ACTOR, batchSize: 2 })
  const run = {
    ...{ engine: 'hmac', operation: 'rotate', instanceId: 'i-1', correlationId: 'c-1', actor: ACTOR },
    ...{ durationMs: 5, input: null, output: null },
    ...{ errorClass: 'TypeError', errorMessage: 'no such key', errorStack: null },
  }
  await queues.retry({
    queueName: 'work',
    partition,
    items: items.map(({ id }, i) => ({ id, dead: i === 1, run: { ...run, correlationId: `c-${i}` } })),
  })
}

/** Items in every state: ready, leased, scheduled. */
async function leaveSome({ queues }: Office, clock: TestClock): Promise<string> {
  await queues.produce({ queueName: 'work', items: [{ payload: 'leased' }] })
  await queues.lease({ queueName: 'work', clientId: ACTOR, batchSize: 1 })
  const enqueueAt = instant(clock.now() + 3_600n * SECOND_US)
  const { items } = await queues.produce({
    queueName: 'work',
    items: [{ payload: 'an order' }, { payload: 'later', enqueueAt }],
  })
  return items[0]?.id ?? ''
}

/** A failure that somebody reports now. */
export const reportAt = (clock: TestClock) => ({
  ...({ source: 'http', engine: 'http', instanceId: 'i-1', correlationId: 'c-2', sourceId: 's-1' } as const),
  ...{ originalQueue: null, encoding: '', kind: '', reference: '', headers: null, dequeueCount: 3 },
  ...{ errorClass: 'Error', errorMessage: 'refused', errorStack: null, failedBy: null, actor: ACTOR },
  payload: Buffer.from('{"a":1}'),
  firstFailureAt: clock.now(),
  lastFailureAt: clock.now(),
})

/** A copy of a closed store, to be broken. */
export async function copyOf({ url }: FreshStore): Promise<{ url: string; dispose(): Promise<void> }> {
  if (url.startsWith('sqlite:')) {
    const folder = await mkdtemp(join(tmpdir(), 'bartleby-copy-'))
    const file = join(folder, 'store.db')
    await copyFile(url.slice('sqlite:'.length), file)
    return { url: `sqlite:${file}`, dispose: () => rm(folder, { recursive: true, force: true }) }
  }
  const copy = new URL(url)
  const name = `${copy.pathname.slice(1)}_${crypto.randomUUID().slice(0, 8)}`
  const server = new URL(url)
  server.pathname = '/postgres'
  await query(server.href, `CREATE DATABASE "${name}" TEMPLATE "${copy.pathname.slice(1)}"`)
  copy.pathname = `/${name}`
  return { url: copy.href, dispose: () => query(server.href, `DROP DATABASE "${name}" WITH (FORCE)`) }
}
