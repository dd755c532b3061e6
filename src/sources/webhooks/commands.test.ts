import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ServerHere, startServer } from '../../../test/world/server.ts'
import { type FreshStore, freshSqlite } from '../../../test/world/stores.ts'
import { bartleby } from '../../../test/world/terminal-double.ts'

describe('bartleby webhooks', () => {
  let place: FreshStore
  let server: ServerHere

  beforeAll(async () => {
    place = await freshSqlite()
    server = await startServer({ store: place.url, webhooks: {} })
    const { webhooks } = server.office
    const channel = await webhooks.channels.put('orders', { name: null, token: null }, null)
    const callbackUrl = 'http://127.0.0.1:9/hook'
    const consumer = { name: null, token: null, callbackUrl, type: 'pull' }
    await webhooks.consumers.put(channel, 'billing', consumer, null)
  })
  afterAll(async () => {
    await server?.stop()
    await place?.dispose()
  })

  const webhooks = (args: string, world: Parameters<typeof bartleby>[1] = {}) =>
    bartleby(['webhooks', ...args.split(' ')], { env: { BARTLEBY_URL: server.url }, ...world })
  const printed = async (args: string) => {
    const { code, out, err } = await webhooks(args)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    return out
  }

  it('shows consumers, as a table and as JSON', async () => {
    const [headings, row] = (await printed('status')).split('\n')
    expect(headings).toMatch(
      /^CHANNEL +CONSUMER +TYPE +QUEUED +IN FLIGHT +DELIVERED +DEAD +OLDEST DEAD +STATE$/,
    )
    expect(row).toMatch(/^orders +billing +pull +0 +0 +0 +0 +- +delivering$/)
    expect(JSON.parse(await printed('status --channel orders --json'))).toMatchObject([{ dead: 0 }])
  })

  it('does what can be done with a consumer', async () => {
    expect(await printed('resume orders billing')).toBe(
      "consumer 'billing' of channel 'orders' was not paused",
    )
    expect(await printed('limits orders billing --at-once 5 --per-second 0.5')).toBe(
      "consumer 'billing' of channel 'orders': of each server at once 5, per second 0.5",
    )
    expect(await printed('limits --help')).toMatch(
      /--at-once <number> +attempts of a server at the same time/,
    )
    expect(await printed('secret orders billing')).toMatch(/^whsec_\S+$/)
    expect(await printed('secret orders billing --drop-previous')).toContain('with the newest secret only')
    expect(await printed('secret orders billing --off')).toContain('are not signed any more')
    expect(await printed('requeue orders billing')).toContain('are being requeued')
    expect(await printed('purge orders billing --yes')).toBe('0 dead jobs were erased')
    expect(await printed('runs')).toBe('there are no runs')
  })

  it('asks before it erases, and says what it cannot do', async () => {
    const env = { BARTLEBY_URL: server.url }
    expect(await webhooks('purge orders billing', { env, isTTY: true, answer: 'orders' })).toMatchObject({
      code: 1,
      err: 'bartleby: nothing was changed',
    })
    expect(await webhooks('resume orders nobody')).toMatchObject({
      code: 3,
      err: "bartleby: consumer does not exist; channel 'orders' has no consumer 'nobody'",
    })
    expect((await webhooks('limits orders billing --per-second fast')).code).toBe(2)
    expect((await webhooks('secret orders billing --off --drop-previous')).code).toBe(2)
  })

  it('verifies the counts of a store, and repairs them', async () => {
    const store = ['--store', place.url]
    const verify = (...flags: string[]) => bartleby(['webhooks', 'verify', ...store, ...flags])
    expect(await verify()).toMatchObject({
      code: 0,
      out: 'the counts of 1 consumer are what counting gives',
    })
    const file = new DatabaseSync(place.url.replace('sqlite:', ''))
    file.exec(`INSERT INTO webhook_totals SELECT number, 3, 4 FROM webhook_consumers;
      INSERT INTO signatures VALUES (1, '1-x', 'Error', 'x', 1);
      INSERT INTO places VALUES (1, 'webhooks', 'webhooks', 'orders/billing');
      INSERT INTO drawers (id, source, engine, queue, signature, place) VALUES (1, 'webhooks', 'webhooks', 'orders/billing', 1, 1);
      INSERT INTO letter_totals VALUES (1, 0, 2, 3000000000000000);
      INSERT INTO place_totals VALUES (1, 0, 2, 3000000000000000)`)
    file.close()
    const mismatches = [{ channelId: 'orders', consumerId: 'billing', counted: 2, actual: 0 }]
    const tallies = [
      { channelId: 'orders', consumerId: 'billing', tally: 'delivered', counted: 4, actual: 0 },
    ]
    const wrong = await verify('--json')
    expect(wrong.code).toBe(1)
    expect(JSON.parse(wrong.out)).toEqual({ checked: 1, mismatches, tallies, repaired: false })
    expect(wrong.err).toBe('bartleby: 2 of the counts of webhooks are wrong')
    const repaired = await verify('--repair', '--json')
    expect(repaired.code).toBe(0)
    expect(JSON.parse(repaired.out)).toEqual({ checked: 1, mismatches, tallies, repaired: true })
    expect((await verify()).code).toBe(0)
  })

  it('ends with 2 when it could not verify', async () => {
    const away = await bartleby(['webhooks', 'verify', '--store', 'sqlite:/nowhere/at-all.db'])
    expect(away).toMatchObject({ code: 2, err: "bartleby: there is no store at '/nowhere/at-all.db'" })
  })
})
