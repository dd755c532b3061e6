import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { barePostgres } from '../../test/world/stores.ts'
import { bartleby } from '../../test/world/terminal-double.ts'
import { migrateStore } from '../office.ts'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-verify-'))
  file = join(folder, 'store.db')
})

afterEach(() => rmSync(folder, { recursive: true }))

const verify = (...flags: string[]) => bartleby(['verify', '--store', `sqlite:${file}`, ...flags])

const onStore = (text: string): void => {
  const store = new DatabaseSync(file)
  store.exec(text)
  store.close()
}

describe('bartleby verify', () => {
  it('ends with 0 on a store that keeps its promises, with a line for each', async () => {
    await migrateStore(`sqlite:${file}`)
    const { code, out, err } = await verify()
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out.split('\n').map((line) => line.slice(0, 5).trim())).toEqual([
      '✓ I2',
      '✓ I3',
      '✓ I4',
      '✓ I5',
      '✓ I6',
      '✓ I7',
      '✓ I9',
      '✓ I10',
      '✓ I11',
      '✓ W1',
      '✓ W2',
      '✓ W3',
      '✓ K1',
      '✓ K2',
      '✓ K3',
      '✓ AZ1',
      '✓ AZ2',
      '✓ R1',
      '✓ S1',
    ])
  })

  it('ends with 1 on one that does not, and prints what is wrong and where', async () => {
    await migrateStore(`sqlite:${file}`)
    onStore(`INSERT INTO places VALUES (1, 'http', 'hmac', '');
             INSERT INTO place_totals VALUES (1, 4, 5, 0);
             INSERT INTO letter_totals VALUES (1, 0, 5, 0), (2, 0, 1, 0)`)
    const { code, out, err } = await verify()
    expect(code).toBe(1)
    expect(out).toContain('✗ I6   every count is what counting gives: broken 2 times')
    expect(out).toContain('I6  drawer 1 has 0 Pending letters, and the books say 5')
    expect(out).toContain('    drawer=1  status=Pending  books=5  found=0')
    expect(err).toBe('bartleby: the store breaks I6, I11, 3 times in all')
  })

  it('prints the same as JSON, and no progress', async () => {
    await migrateStore(`sqlite:${file}`)
    onStore(`INSERT INTO places VALUES (1, 'http', 'hmac', ''); INSERT INTO place_totals VALUES (1, 4, 1, 0)`)
    const drawn: string[] = []
    const args = ['verify', '--store', `sqlite:${file}`, '--json']
    const { code, out } = await bartleby(args, { redraw: (text) => void drawn.push(text) })
    expect(code).toBe(1)
    expect(drawn).toEqual([])
    const { clean, invariants } = JSON.parse(out)
    expect(clean).toBe(false)
    expect(invariants.find(({ invariant }: { invariant: string }) => invariant === 'I11')).toMatchObject({
      broken: 1,
      violations: [{ invariant: 'I11', row: { captured: '1', Pending: '0' } }],
    })
  })

  it('takes the bar away when it is done', async () => {
    await migrateStore(`sqlite:${file}`)
    const drawn: string[] = []
    await bartleby(['verify', '--store', `sqlite:${file}`], { redraw: (text) => void drawn.push(text) })
    expect(drawn.at(-1)).toBe('')
  })

  it('makes no store where there is none', async () => {
    const { code, err } = await verify()
    expect(code).toBe(3)
    expect(err).toBe(`bartleby: there is no store at '${file}'`)
    expect(existsSync(file)).toBe(false)
  })

  it('says what to do about a store of an older version, and leaves it as it is', async () => {
    await migrateStore(`sqlite:${file}`)
    onStore('DELETE FROM migrations WHERE number > 2; PRAGMA wal_checkpoint(TRUNCATE)')
    const before = readFileSync(file)
    const { code, err } = await verify()
    expect(code).toBe(3)
    expect(err).toMatch(/schema version 2, .*start the server once or run `bartleby migrate`/)
    expect(readFileSync(file).equals(before)).toBe(true)
  })

  it('refuses a store that is newer than the program', async () => {
    await migrateStore(`sqlite:${file}`)
    onStore("INSERT INTO migrations (number, name) VALUES (9999, 'future')")
    expect(await verify()).toMatchObject({ code: 3, err: expect.stringContaining('version 9999') })
  })

  it('refuses a file that is no store', async () => {
    writeFileSync(file, 'not a database, but long enough to be taken for one '.repeat(100))
    expect((await verify()).code).toBe(3)
  })

  it('tells an empty PostgreSQL database from a store', async () => {
    const place = await barePostgres()
    try {
      const { code, err } = await bartleby(['verify', '--store', place.url])
      expect(code).toBe(3)
      expect(err).toContain('schema version 0')
    } finally {
      await place.dispose()
    }
  })

  it('says in one line that PostgreSQL cannot be reached, without the password', async () => {
    const store = 'postgres://app:secret@127.0.0.1:9/none'
    const { code, err } = await bartleby(['verify', '--store', store])
    expect(code).toBe(3)
    expect(err).toContain('ECONNREFUSED')
    expect(err).not.toContain('secret')
  })

  it('reads the store from the environment', async () => {
    await migrateStore(`sqlite:${file}`)
    expect(await bartleby(['verify'], { env: { BARTLEBY_STORE: `sqlite:${file}` } })).toMatchObject({
      code: 0,
    })
  })
})
