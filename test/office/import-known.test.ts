/** An import into a dead queue never makes a second copy of something that has a letter, wherever that lies. */
import { afterEach, describe, expect, it } from 'vitest'
import type { FailedRun } from '../../src/queues/queue.ts'
import { RedriveOffice } from '../world/redrive-office.ts'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'

let desk: RedriveOffice
afterEach(() => desk.close())

const SETTINGS = { leaseTimeout: '1h', expireTimeout: '240h', requestedPartitions: 1 }
const run: FailedRun = {
  engine: 'press',
  operation: 'print',
  instanceId: 'customer-1',
  correlationId: 'c-1',
  actor: 'worker',
  durationMs: 1,
  input: null,
  output: null,
  errorClass: 'Error',
  errorMessage: 'no paper',
  errorStack: null,
}

const leaseOne = async (queueName: string) => {
  const { items } = await desk.office.queues.lease({
    queueName,
    clientId: 'worker',
    batchSize: 1,
    requestTimeout: '1s',
  })
  return items[0] ?? expect.fail(`nothing to lease in '${queueName}'`)
}

/** An item of the queue dies; gives the id that it died with. */
async function die(queueName: string, how: { readonly run?: FailedRun } = {}): Promise<string> {
  await desk.office.queues.produce({ queueName, items: [{ payload: 'x' }] })
  return dieAgain(queueName, how)
}

async function dieAgain(queueName: string, how: { readonly run?: FailedRun } = {}): Promise<string> {
  const { id } = await leaseOne(queueName)
  await desk.office.queues.retry({ queueName, items: [{ id, dead: true, ...how }] })
  return id
}

async function sendBack(): Promise<void> {
  const { items } = await desk.office.letters.list({ status: 'Pending' })
  for (const letter of items)
    await desk.office.letters.retry(letter, { edit: null, notes: null, actor: 'nell' })
}

/** What becomes of an item of this id that is imported into a dead queue. */
async function imported(sourceId: string, queueName = 'graves'): Promise<string> {
  const [outcome] = await desk.office.queues.importItems({ queueName, items: [{ sourceId }] })
  return outcome?.outcome ?? expect.fail('no outcome')
}

describe.each(stores.map((kind) => reused(kind)))('an import into a dead queue on $name', (kind) => {
  const open = async (): Promise<void> => {
    desk = await RedriveOffice.open(kind)
    const { queues } = desk.office
    await queues.create({ ...SETTINGS, queueName: 'graves', requestedPartitions: 2 })
    await queues.create({ ...SETTINGS, queueName: 'orders', deadQueue: 'graves' })
    await queues.create({ ...SETTINGS, queueName: 'lonely' })
  }

  it('knows letters in its other partitions and in no dead queue', async () => {
    await open()
    const lying = await die('orders')
    const nowhere = await die('lonely')
    for (const partition of [0, 1]) {
      const items = [{ sourceId: lying }, { sourceId: nowhere }]
      const outcomes = await desk.office.queues.importItems({ queueName: 'graves', partition, items })
      expect(outcomes.map(({ outcome }) => outcome)).toEqual(['existed', 'existed'])
    }
  })

  it('knows letters of every engine', async () => {
    await open()
    expect(await imported(await die('orders', { run }))).toBe('existed')
    const reported = await die('lonely', { run: { ...run, engine: 'other', instanceId: 'customer-2' } })
    expect(await imported(reported)).toBe('existed')
  })

  it('knows letters whose items are on their way, until they arrive', async () => {
    await open()
    const id = await die('orders')
    await sendBack()
    expect(await imported(id)).toBe('existed')
    const sent = await leaseOne('orders')
    await desk.office.queues.complete({ queueName: 'orders', ids: [sent.id] })
    expect(await imported(id)).toBe('imported')
  })

  it('knows the ids that items on their way have now, until they arrive', async () => {
    await open()
    await die('orders')
    await die('orders', { run })
    await sendBack()
    const sent = [await leaseOne('orders'), await leaseOne('orders')]
    for (const { id } of sent) expect(await imported(id)).toBe('existed')
    for (const { id } of sent) {
      await desk.office.queues.complete({ queueName: 'orders', ids: [id] })
      expect(await imported(id)).toBe('imported')
    }
  })

  it('knows letters by the id under which their dead queue lists them', async () => {
    await open()
    const first = await die('orders')
    await sendBack()
    const second = await dieAgain('orders')
    expect(second).not.toBe(first)
    const lists = [0, 1].map((partition) => desk.office.queues.listItems({ queueName: 'graves', partition }))
    expect((await Promise.all(lists)).flat().map(({ sourceId }) => sourceId)).toEqual([second])
    expect([await imported(second), await imported(first)]).toEqual(['existed', 'existed'])
  })

  it('takes the id of a letter that is done with', async () => {
    await open()
    const id = await die('lonely')
    const { items } = await desk.office.letters.list({})
    for (const letter of items)
      await desk.office.letters.change(letter, { status: 'Resolved', notes: null, actor: 'nell' })
    expect(await imported(id)).toBe('imported')
  })
})
