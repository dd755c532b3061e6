/** `bartleby outbox adopt` as a person meets it: what it prints, and how it ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bartleby } from '../world/terminal-double.ts'

let folder: string
let db: DatabaseSync
let url: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-adopt-'))
  url = `sqlite:${join(folder, 'shop.db')}`
  db = new DatabaseSync(join(folder, 'shop.db'))
})

afterEach(() => {
  db.close()
  rmSync(folder, { recursive: true })
})

const adopt = (...flags: string[]) => bartleby(['outbox', 'adopt', '--url', url, ...flags])

const makeTable = () =>
  db.exec(`CREATE TABLE events (id INTEGER PRIMARY KEY, tenant_id TEXT, name TEXT, payload TEXT, created_at TEXT, sent INTEGER);
    INSERT INTO events (tenant_id, name, payload, created_at, sent) VALUES ('t', 'E', '{}', '2026-01-01T00:00:00Z', 1), ('t', 'E', '{}', '2026-01-01T00:00:01Z', 0)`)

const EVENTS = ['--table', 'events', '--column', 'eventType=name', '--column', 'isProcessed=sent']

describe('bartleby outbox adopt', () => {
  it('tells each step, and ends with a report', async () => {
    makeTable()
    const { code, out, err } = await adopt(...EVENTS)
    expect(code).toBe(0)
    expect(out).toBe(
      'events is an outbox\n  rows          2\n  keys filled   2\n  keys missing  0\n  duplicates    0',
    )
    expect(err.split('\n')[0]).toBe('✓ add the 15 columns that are missing')
    expect(err).toContain('✓ build the index events_tenant_key')
    const again = await adopt(...EVENTS)
    expect(again.code).toBe(0)
    expect(again.err).not.toContain('✓')
  })

  it('makes the table where there is none', async () => {
    expect(await adopt()).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^outbox_messages was made\n/),
    })
  })

  it('prints the SQL of a dry run, and nothing else', async () => {
    makeTable()
    const { code, out, err } = await adopt(...EVENTS, '--dry-run', '--enforce')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^-- events: 2 rows, 2 without a key, 0 duplicates\n\n-- add the 15 columns/)
    expect(out).toContain('ALTER TABLE "events" ADD COLUMN "idempotency_key" text;')
    expect(out).toContain('"sent"')
    expect((await adopt()).code).toBe(0)
    expect((await adopt('--dry-run')).out).toMatch(/\n-- nothing to do$/)
  })

  it('prints the report as JSON', async () => {
    makeTable()
    const { code, out, err } = await adopt(...EVENTS, '--json')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(JSON.parse(out)).toMatchObject({
      table: 'events',
      created: false,
      rows: 2,
      keysMissing: 0,
      keysFilled: 2,
      duplicates: [],
      duplicateCount: 0,
      steps: expect.arrayContaining([{ what: expect.any(String), sql: expect.any(String), outcome: 'done' }]),
    })
  })

  it('lists duplicates and ends with 1, until they may be given keys', async () => {
    makeTable()
    db.exec(`ALTER TABLE events ADD COLUMN idempotency_key TEXT; UPDATE events SET idempotency_key = 'k'`)
    const { code, out, err } = await adopt(...EVENTS)
    expect(code).toBe(1)
    expect(out).toContain('  duplicates    1\n    tenant=t  key=k  rows=2  ids=1,2')
    expect(err).toContain('✗ build the index events_tenant_key; writers wait for it: left out')
    expect(err).toContain('1 keys are there more than once in their tenant: --rekey-duplicates')
    const again = await adopt(...EVENTS, '--rekey-duplicates')
    expect(again).toMatchObject({
      code: 0,
      out: expect.stringContaining('1 rows were given a key of their own'),
    })
  })

  it('draws its progress, with a rate', async () => {
    makeTable()
    db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
      INSERT INTO events (tenant_id, name, payload, created_at, sent) SELECT 't', 'E', '{}', '2026-01-01T00:00:00Z', 0 FROM n`)
    const drawn: string[] = []
    const args = ['outbox', 'adopt', '--url', url, ...EVENTS, '--chunk', '20']
    await bartleby(args, { redraw: (text) => void drawn.push(text) })
    expect(drawn.join('\n')).toMatch(/█.*giving keys \([\d,]+\/s\) {2}[\d,]+ of 402 rows/)
    expect(drawn.at(-1)).toBe('')
  })

  it.each([
    [['--column', 'eventType'], 'name=Column'],
    [['--column', 'colour=red'], 'columns.colour'],
    [['--chunk', 'many'], 'It is no number'],
    [['--chunk', '0'], 'chunk'],
    [['--naming', 'kebab'], 'naming'],
  ])('ends with 2 on wrong usage: %j', async (flags, word) => {
    expect(await adopt(...flags)).toMatchObject({ code: 2, err: expect.stringContaining(word) })
  })

  it('ends with 1 on a table that cannot be adopted, and says what to do', async () => {
    db.exec('CREATE TABLE events (id INTEGER PRIMARY KEY)')
    const { code, err } = await adopt('--table', 'events')
    expect(code).toBe(1)
    expect(err).toBe(
      "bartleby: table 'events' cannot be adopted; it lacks tenant_id, event_type, payload, created_at; say how they are called there: --column tenantId=… --column eventType=… --column payload=… --column createdAt=…, or --naming pascal",
    )
  })

  it('ends with 3 where there is no database, without the password', async () => {
    expect(await bartleby(['outbox', 'adopt', '--url', `${url}-typo`])).toMatchObject({ code: 3 })
    const away = await bartleby(['outbox', 'adopt', '--url', 'postgres://app:secret@127.0.0.1:9/shop'])
    expect(away).toMatchObject({ code: 3, err: expect.stringContaining('ECONNREFUSED') })
    expect(away.err).not.toContain('secret')
  })
})
