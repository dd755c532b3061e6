import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PostedOutbox } from '../../../../test/world/outbox-post.ts'
import { stores } from '../../../../test/world/stores.ts'
import { bartleby } from '../../../../test/world/terminal-double.ts'
import { SystemClock } from '../../../core/system-clock.ts'
import { outboxSchema } from '../table/schema.ts'

const status = (url: string, ...flags: string[]) => bartleby(['outbox', 'status', '--url', url, ...flags])
const ago = (seconds: number) => new SystemClock().now() - BigInt(seconds) * 1_000_000n

describe.each(stores)('bartleby outbox status on $name', (kind) => {
  let outbox: PostedOutbox
  afterEach(() => outbox.close())

  it('shows what waits, and that it is well', async () => {
    outbox = await PostedOutbox.open(kind)
    await outbox.insert(
      { createdAt: ago(30), retryCount: 1 },
      { createdAt: ago(5) },
      { createdAt: ago(900), deadAt: ago(90) },
    )
    const { code, out, err } = await status(outbox.url)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(
      /^outbox_messages is ok\n {2}backlog {5}2\n {2}failed {6}1\n {2}oldest age {2}3\ds\n {2}dead {8}1$/,
    )
  })

  it('ends with 0 when it is degraded, and says why', async () => {
    outbox = await PostedOutbox.openAdopted(kind)
    const id = '7f9c24e8-3b12-4fef-91e0-56a2d5a6b8c3'
    await outbox.insert({ createdAt: ago(100), id, tenantId: id })
    const { code, out } = await status(outbox.url, '--naming', 'pascal')
    expect(code).toBe(0)
    expect(out).toMatch(/^OutboxMessages is degraded: oldestAgeSeconds is 10\d, above 60\n/)
    expect(out).toContain('oldest age  1m4')
  })

  it('ends with 1 when it is unhealthy; as JSON too', async () => {
    outbox = await PostedOutbox.open(kind, { table: 'events', columns: { eventType: 'name' } })
    await outbox.insert({ createdAt: ago(700) })
    const { code, out, err } = await status(
      outbox.url,
      '--table',
      'events',
      '--column',
      'eventType=name',
      '--json',
    )
    expect(code).toBe(1)
    expect(err).toMatch(/^bartleby: the outbox is unhealthy: oldestAgeSeconds is 70\d, above 600$/)
    expect(JSON.parse(out)).toEqual({
      table: 'events',
      backlog: 1,
      failedPending: 0,
      oldestAgeSeconds: expect.any(Number),
      dead: 0,
      health: { status: 'unhealthy', reasons: [expect.stringContaining('oldestAgeSeconds')] },
    })
  })

  it('ends with 3 when there is no such table, or it is no outbox', async () => {
    outbox = await PostedOutbox.open(kind)
    const missing = await status(outbox.url, '--table', 'elsewhere')
    expect(missing.code).toBe(3)
    expect(missing.err).toMatch(/^bartleby: table 'elsewhere' does not exist; create it with: /)
    await outbox.execute('CREATE TABLE things (id integer PRIMARY KEY)')
    const other = await status(outbox.url, '--table', 'things')
    expect(other.code).toBe(3)
    expect(other.err).toMatch(/^bartleby: table 'things' is no outbox yet; it lacks tenant_id, /)
  })
})

describe('bartleby outbox status', () => {
  let folder: string
  let file: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'bartleby-status-'))
    file = join(folder, 'app.db')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('leaves a file of others as it is', async () => {
    const app = new DatabaseSync(file)
    app.exec(outboxSchema('sqlite'))
    app.close()
    const before = readFileSync(file)
    expect((await status(`sqlite:${file}`)).code).toBe(0)
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(existsSync(`${file}-wal`)).toBe(false)
  })

  it('makes no file where there is none, and refuses one that is no database', async () => {
    expect(await status(`sqlite:${file}`)).toMatchObject({
      code: 3,
      err: `bartleby: there is no database at '${file}'`,
    })
    expect(existsSync(file)).toBe(false)
    writeFileSync(file, 'not a database, but long enough to be taken for one '.repeat(100))
    expect((await status(`sqlite:${file}`)).code).toBe(3)
  })

  it('says in one line that PostgreSQL cannot be reached, without the password', async () => {
    const { code, err } = await status('postgres://app:secret@127.0.0.1:9/none')
    expect(code).toBe(3)
    expect(err).toContain('ECONNREFUSED')
    expect(err).not.toContain('secret')
  })

  it.each([
    [['--url', 'mysql://app:secret@db/shop'], '--url is neither'],
    [['--url', 'sqlite::memory:'], '--url is neither'],
    [[], '--url'],
    [['--url', 'sqlite:x.db', '--naming', 'camel'], 'naming'],
    [['--url', 'sqlite:package.json', '--column', 'colour=Colour'], 'colour'],
    [['--url', 'sqlite:package.json', '--column', 'colour'], 'name=value'],
  ])('ends with 2 for %o', async (flags, problem) => {
    const { code, err } = await bartleby(['outbox', 'status', ...flags])
    expect(code).toBe(2)
    expect(err).toContain(problem)
    expect(err).not.toContain('secret')
  })
})
