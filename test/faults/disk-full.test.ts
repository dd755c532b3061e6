/** A disk that fills up under SQLite: refuse, do not corrupt, go on when there is room again. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { spawnServer } from '../world/server.ts'
import { jsonCodec, Wire } from '../world/wire.ts'
import { expectRefusal, serveUntilEnd } from './start.ts'

const folder = mkdtempSync(join(tmpdir(), 'bartleby-disk-'))
const mount = (options: string) =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { encoding: 'utf8' }).status === 0
const isMounted = mount('size=3m')
if (!isMounted) console.warn('skipped: a full disk needs the right to mount a small file system')

afterAll(() => {
  if (isMounted) spawnSync('umount', [folder])
  rmSync(folder, { recursive: true, force: true })
})

describe.skipIf(!isMounted)('a disk that is full', () => {
  it('makes writes fail with 454 and corrupts nothing; when there is room again all goes on', async () => {
    const file = join(folder, 'store.db')
    const server = await spawnServer({ store: `sqlite:${file}`, testApi: false })
    const wire = new Wire(server.url)
    try {
      const queue_name = 'q'
      const settings = { lease_timeout: '1h', expire_timeout: '2h', requested_partitions: 1 }
      const created = await wire.call(jsonCodec, '/v1/queues.create', { ...settings, queue_name })
      expect(created.status).toBe(200)
      const acknowledged: string[] = []
      const produce = async (name: string) => {
        const items = [{ reference: name, bytes: Buffer.alloc(20_000, 7).toString('base64') }]
        const answer = await wire.call(jsonCodec, '/v1/queue.produce', {
          queue_name,
          request_timeout: '1m',
          items,
        })
        if (answer.status === 200) acknowledged.push(name)
        return answer
      }
      const listed = async () => {
        const { status, body } = await wire.call(jsonCodec, '/v1/storage/items.list', {
          queue_name,
          limit: 10_000,
        })
        expect(status).toBe(200)
        // The reply of a list, as the contract has it.
        return (body.items as { reference: string; payload: string }[]).map(({ reference }) => reference)
      }
      const lease = { queue_name, client_id: 'c', batch_size: 5, request_timeout: '5s' }

      let answer = await produce('0')
      for (let i = 1; answer.status === 200 && i < 1_000; i++) answer = await produce(String(i))
      const again = { status: 454, body: { message: 'internal error, try your request again' } }
      expect(answer).toMatchObject(again)
      for (let i = 0; i < 20; i++) expect(await produce(`refused-${i}`)).toMatchObject(again)
      expect((await wire.call(jsonCodec, '/v1/queue.lease', lease)).status).toBe(454)
      expect(await listed()).toEqual(acknowledged)
      expect((await wire.raw('/health/live', { method: 'GET' })).status).toBe(200)
      for (let i = 0; i < 3; i++)
        expect((await wire.raw('/health/ready', { method: 'GET' })).status, 'while no write is taken').toBe(
          503,
        )

      expect(mount('remount,size=64m')).toBe(true)
      await expect.poll(async () => (await wire.raw('/health/ready', { method: 'GET' })).status).toBe(200)
      await expect.poll(async () => (await produce('after')).status).toBe(200)
      expect(await listed()).toEqual(acknowledged)
      const leased = await wire.call(jsonCodec, '/v1/queue.lease', lease)
      expect(leased).toMatchObject({
        status: 200,
        body: { items: [{ attempts: 1, reference: '0' }, {}, {}, {}, {}] },
      })
      expect(await server.term()).toBe(0)
    } finally {
      await wire.close()
      await server.kill9()
    }
    const store = new DatabaseSync(file)
    expect(store.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
    store.close()
  })

  it('is refused at the start with one line when there is no room at all', async () => {
    spawnSync('dd', ['if=/dev/zero', `of=${join(folder, 'ballast')}`, 'bs=64k'])
    await expectRefusal(serveUntilEnd(`sqlite:${join(folder, 'other.db')}`), /full|disk I\/O error/)
  })
})
