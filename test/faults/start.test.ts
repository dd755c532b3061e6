/** Stores that cannot be used: the server says why in one line and ends with code 1. */
import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { migrateStore } from '../../src/office.ts'
import { query } from '../world/postgres.ts'
import { freshPostgres } from '../world/stores.ts'
import { expectRefusal, serveUntilEnd } from './start.ts'

describe('a start on SQLite', () => {
  let folder: string
  let file: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bartleby-start-'))
    file = join(folder, 'store.db')
  })

  afterEach(async () => {
    await chmod(folder, 0o755)
    await rm(folder, { recursive: true, force: true })
  })

  it('refuses a file that is no database, and leaves it as it is', async () => {
    const garbage = randomBytes(50_000)
    await writeFile(file, garbage)
    await expectRefusal(serveUntilEnd(`sqlite:${file}`), /store\.db.*file is not a database/)
    expect(garbage.equals(await readFile(file))).toBe(true)
  })

  it('refuses a database whose pages are damaged', async () => {
    await migrateStore(`sqlite:${file}`)
    const pages = new DatabaseSync(file)
    pages.exec('PRAGMA journal_mode = DELETE')
    const [{ size } = { size: 0 }] = pages.prepare('SELECT page_size AS size FROM pragma_page_size').all()
    pages.close()
    const handle = await open(file, 'r+')
    const { size: length } = await handle.stat()
    await handle.write(randomBytes(length - Number(size)), 0, undefined, Number(size))
    await handle.close()
    await expectRefusal(serveUntilEnd(`sqlite:${file}`), /malformed/)
  })

  it('refuses a file that may not be written', async () => {
    await migrateStore(`sqlite:${file}`)
    await chmod(file, 0o444)
    await expectRefusal(serveUntilEnd(`sqlite:${file}`, { asAnybody: true }), /store\.db.*permission denied/)
  })

  it('refuses a folder in which it may not create the file', async () => {
    await chmod(folder, 0o555)
    await expectRefusal(serveUntilEnd(`sqlite:${file}`, { asAnybody: true }), /store\.db.*unable to open/)
  })

  it('refuses a folder in the place of the file', async () => {
    await expectRefusal(serveUntilEnd(`sqlite:${folder}`), /unable to open/)
  })

  it('refuses a store that a newer version has used', async () => {
    await migrateStore(`sqlite:${file}`)
    const store = new DatabaseSync(file)
    store.exec("INSERT INTO migrations (number, name) VALUES (9999, 'future')")
    store.close()
    await expectRefusal(serveUntilEnd(`sqlite:${file}`), /schema version 9999/)
  })
})

describe('a start on PostgreSQL', () => {
  it.each([
    ['that nobody serves', 'postgres://bartleby@127.0.0.1:1/bartleby', /cannot connect.*ECONNREFUSED/],
    [
      'that nobody serves on any address of its host',
      'postgres://bartleby@localhost:1/bartleby',
      /ECONNREFUSED/,
    ],
    ['on a host that does not exist', 'postgres://bartleby@no-such-host.invalid/bartleby', /no-such-host/],
  ])('refuses a server %s', async (_, store, reason) => {
    await expectRefusal(serveUntilEnd(store), reason)
  })

  it('refuses a wrong password and does not show it', async () => {
    const place = await freshPostgres()
    try {
      const url = new URL(place.url)
      url.password = 'open-sesame'
      const ended = serveUntilEnd(url.href)
      await expectRefusal(ended, /password authentication failed/)
      expect((await ended).err).not.toContain('open-sesame')
    } finally {
      await place.dispose()
    }
  })

  it('refuses a store that a newer version has used', async () => {
    const place = await freshPostgres()
    try {
      await migrateStore(place.url)
      await query(place.url, "INSERT INTO bartleby.migrations (number, name) VALUES (9999, 'future')")
      await expectRefusal(serveUntilEnd(place.url), /schema version 9999/)
    } finally {
      await place.dispose()
    }
  })
})
