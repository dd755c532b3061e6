/** What an office makes of outboxes that are not ready, or not right, when it starts. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createDispatcher } from '../../src/sources/outbox/dispatcher/create-dispatcher.ts'
import { once } from '../../src/sources/outbox/sql/table.ts'
import { outboxSchema } from '../../src/sources/outbox/table/schema.ts'
import { type ServerHere, startServer } from '../world/server.ts'

describe('an outbox that is not ready when the server starts', () => {
  let folder: string
  let file: string
  let server: ServerHere | undefined

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'bartleby-start-'))
    file = join(folder, 'shop.db')
  })
  afterEach(async () => {
    await server?.stop()
    server = undefined
    rmSync(folder, { recursive: true })
  })

  const start = async (...outbox: Parameters<typeof startServer>[0]['outbox'] & {}) => {
    server = await startServer({ store: 'sqlite::memory:', testApi: false, outbox })
    return server
  }
  const health = async ({ url }: ServerHere) => {
    const answer = await fetch(`${url}/api/outbox/health`)
    // What the call is documented to answer.
    return ((await answer.json()) as { data: { status: string; reasons: string[] } }).data
  }

  it('is served once its file is no longer locked by another program', async () => {
    const application = new DatabaseSync(file)
    application.exec(`${outboxSchema('sqlite')} BEGIN EXCLUSIVE`)
    const started = await start({ name: 'shop', url: `sqlite:${file}`, transport: 'log' })
    expect(await health(started)).toEqual({
      status: 'unhealthy',
      reasons: [expect.stringContaining('database is locked')],
      outboxes: expect.anything(),
    })
    application.exec(
      `INSERT INTO outbox_messages (tenant_id, event_type, payload) VALUES ('t', 'Placed', '{}'); COMMIT`,
    )
    const waiting = application.prepare(
      'SELECT count(*) AS n FROM outbox_messages WHERE processed_at IS NULL',
    )
    await expect.poll(() => waiting.get()?.n).toBe(0)
    // What was read while the file was locked is used for a while: the longer, the slower the machine.
    await expect.poll(async () => (await health(started)).status).toBe('ok')
    application.close()
  })

  it('is unhealthy while its file is no database; the server runs, and ends', async () => {
    writeFileSync(file, 'this is no database, however long it is '.repeat(100))
    const started = await start({ name: 'shop', url: `sqlite:${file}`, transport: 'log' })
    expect((await health(started)).reasons).toEqual([expect.stringContaining('file is not a database')])
  })

  it('is refused by its name where an option of it is wrong', async () => {
    const transport = { type: 'http', url: 'https://x.example/', headers: { 'no header': 'x' } } as const
    await expect(
      start({ name: 'mail', transport: 'log' }, { name: 'shop', table: 'shop', transport }),
    ).rejects.toThrow("option outbox 'shop': transport.headers.no header is invalid")
    await expect(start({ name: 'shop', columns: { id: 'x', error: 'x' } })).rejects.toThrow(
      "option outbox 'shop': columns.error is invalid; 'x' is the column of id",
    )
  })
})

describe('a dispatcher with wrong options', () => {
  it('opens no database', () => {
    const path = join(tmpdir(), `bartleby-never-${process.pid}.db`)
    const url = `sqlite:${path}`
    const transport = async () => {}
    expect(() => createDispatcher({ url, name: 'no name', transport })).toThrow('option name is invalid')
    // What a program without types may pass.
    expect(() => createDispatcher({ url, transport: 'http://x' as never })).toThrow('option transport')
    expect(existsSync(path)).toBe(false)
  })
})

describe('looking at a table', () => {
  afterEach(() => vi.useRealTimers())

  it('is done once; again after a failure, and some seconds later while something is missing', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const answers = [
      Promise.reject(new Error('away')),
      ...['columns', 'all', 'never'].map(async (each) => each),
    ]
    const look = once(
      () => answers.shift() ?? Promise.reject(new Error('asked too often')),
      (found) => found === 'all',
    )
    await expect(look()).rejects.toThrow('away')
    expect([await look(), await look()]).toEqual(['columns', 'columns'])
    vi.advanceTimersByTime(10_000)
    expect([await look(), await look()]).toEqual(['all', 'all'])
    vi.advanceTimersByTime(3_600_000)
    expect(await look()).toBe('all')
  })
})
