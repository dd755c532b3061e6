/** The queue commands against a real server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningServer, startServer } from '../../../../test/world/server.ts'
import { bartleby } from '../../../../test/world/terminal-double.ts'

let server: RunningServer

beforeAll(async () => {
  server = await startServer({ store: 'sqlite::memory:', testApi: false })
})

afterAll(() => server.stop())

const queues = (...args: string[]) => bartleby(['queues', ...args], { env: { BARTLEBY_URL: server.url } })

describe('bartleby queues', () => {
  it('takes an item by hand from its making to its end', async () => {
    expect((await queues('list')).out).toContain('no queues yet')
    await queues('create', 'dead')
    await queues('create', 'orders', '--dead-queue', 'dead', '--max-attempts', '5', '--reference', 'ours')
    await queues('update', 'orders', '--lease-timeout', '2m')
    expect(JSON.parse((await queues('info', 'orders', '--json')).out)).toMatchObject({
      leaseTimeout: '2m0s',
      maxAttempts: 5,
      deadQueue: 'dead',
      reference: 'ours',
    })
    expect((await queues('list', '--settings')).out).toMatch(
      /^dead .*\norders +2m0s +24h0m0s +5 +dead +1 +ours$/m,
    )

    const produced = await queues('produce', 'orders', 'hello', '--kind', 'greeting')
    expect(produced.out).toMatch(/^queued \w{27} in partition 0$/)
    expect((await queues('peek', 'orders')).out).toMatch(/\w{27} +0 .* greeting .* hello/)
    const leased = JSON.parse((await queues('lease', 'orders', '--json')).out)
    expect(leased.items).toMatchObject([{ payload: 'hello', attempts: 1 }])
    expect((await queues('stats', 'orders')).out).toMatch(/^ +0 +1 +1 +0 /m)
    expect((await queues('list')).out).toMatch(/^orders +0 +1 +0 +0 +0 +0 +\S+ +5 +dead$/m)

    expect((await queues('retry', 'orders', leased.items[0].id, '--dead')).out).toBe('gave back 1')
    expect((await queues('peek', 'dead')).out).toContain('orders (rejected)')
    const dead = JSON.parse((await queues('lease', 'dead', '--json')).out).items[0].id
    expect(await queues('complete', 'dead', dead)).toMatchObject({ code: 0, out: 'completed 1' })
    expect((await queues('complete', 'dead', dead)).code).toBe(3)
  })

  it('creates a dead queue that is missing first, with the same times, and says so', async () => {
    const created = await queues('create', 'mail', '--dead-queue', 'mail-dead', '--expire-timeout', '48h')
    expect(created).toMatchObject({
      code: 0,
      out: "created its dead queue 'mail-dead' first: it was not there; it has the same timeouts\ncreated queue 'mail'",
    })
    const settings = async (name: string) => JSON.parse((await queues('info', name, '--json')).out)
    expect(await settings('mail-dead')).toMatchObject({
      leaseTimeout: '1m0s',
      expireTimeout: '48h0m0s',
      deadQueue: '',
    })
    expect(await settings('mail')).toMatchObject({ expireTimeout: '48h0m0s', deadQueue: 'mail-dead' })
    // One that is there is used as it is.
    expect(
      await queues('create', 'letters', '--dead-queue', 'mail-dead', '--lease-timeout', '5m'),
    ).toMatchObject({
      code: 0,
      out: "created queue 'letters'",
    })
    expect(await settings('mail-dead')).toMatchObject({ leaseTimeout: '1m0s' })
  })

  it('creates no dead queue for a queue that is refused, and prints JSON alone where asked to', async () => {
    expect((await queues('create', 'mail', '--dead-queue', 'never')).code).toBe(1)
    expect((await queues('info', 'never')).code).toBe(3)
    const created = await queues('create', 'parcels', '--dead-queue', 'parcels-dead', '--json')
    expect(JSON.parse(created.out)).toMatchObject({ queueName: 'parcels', deadQueue: 'parcels-dead' })
    expect(created.err).toContain("created its dead queue 'parcels-dead' first")
  })

  it('schedules, and clears what it is told to', async () => {
    await queues('create', 'later')
    expect((await queues('produce', 'later', 'x', '--in', '1h')).out).toMatch(/^scheduled /)
    expect((await queues('clear', 'later', '--scheduled', '--yes')).code).toBe(0)
    expect(JSON.parse((await queues('stats', 'later', '--json')).out).partitions).toMatchObject([
      { scheduled: 0 },
    ])
  })

  it('ends with 3 where nothing is, and with 1 where the server refuses', async () => {
    await queues('create', 'buried')
    await queues('create', 'empty', '--dead-queue', 'buried')
    expect((await queues('lease', 'empty', '--wait', '20ms')).code).toBe(3)
    expect((await queues('info', 'nothing')).code).toBe(3)
    expect((await queues('create', 'empty')).code).toBe(1)
    expect((await queues('delete', 'buried', '--yes')).code).toBe(1)
    expect((await queues('delete', 'buried', '--force', '--yes')).code).toBe(0)
  })
})
