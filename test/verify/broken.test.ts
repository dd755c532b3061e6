/** Every promise, broken by hand: verify finds it, names the row, and finds nothing else. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.ts'
import { verifyStore } from '../../src/verify/verify.ts'
import { type FreshStore, stores } from '../world/stores.ts'
import { bartleby } from '../world/terminal-double.ts'
import { verifyAt } from '../world/verified.ts'
import { copyOf, type Fates, fillStore } from './busy-store.ts'
import { same, type Tampering, tamper } from './tampering.ts'

interface Breakage {
  readonly title: string
  /** What is broken by it. */
  readonly breaks: readonly string[]
  /** One text for both stores, or one for each. */
  readonly sql: (fates: Fates) => Tampering
  /** What the first row of the first invariant says. */
  readonly row: (fates: Fates) => Record<string, string>
}

/** Counts of drawers grow by `letters`, as a transition would have it. */
const addToBooks = (drawer: string, status: number, letters: number) => ({
  postgres: `INSERT INTO bartleby.letter_changes (place, drawer, status, at, letters, last_seen_at)
             SELECT place, id, ${status}, 0, ${letters}, 0 FROM bartleby.drawers WHERE id = ${drawer};`,
  sqlite: `${status === 3 || status === 4 ? '' : growDrawer(drawer, status, letters)}; ${growPlace(drawer, status, letters)};`,
})

const growDrawer = (drawer: string, status: number, letters: number): string =>
  `INSERT INTO bartleby.letter_totals AS known (drawer, status, letters, last_seen_at) VALUES (${drawer}, ${status}, ${letters}, 0)
   ON CONFLICT (drawer, status) DO UPDATE SET letters = known.letters + excluded.letters`
const growPlace = (drawer: string, status: number, letters: number): string =>
  `INSERT INTO bartleby.place_totals AS known (place, status, letters, last_seen_at)
   VALUES ((SELECT place FROM bartleby.drawers WHERE id = ${drawer}), ${status}, ${letters}, 0)
   ON CONFLICT (place, status) DO UPDATE SET letters = known.letters + excluded.letters`

/** An hour after everything that happened in the store. */
const HOUR = 1_800_003_600_000_000

/** Activity grows by `letters`. */
const addToHour = (subject: string, at: string, act: number, letters: number): string =>
  `INSERT INTO bartleby.letter_hours AS known (subject, act, at, letters) VALUES (${subject}, ${act}, ${at}, ${letters})
   ON CONFLICT (subject, act, at) DO UPDATE SET letters = known.letters + excluded.letters`
const addToMinute = (at: string, act: number, letters: number): string =>
  `INSERT INTO bartleby.letter_minutes AS known (act, at, letters) VALUES (${act}, ${at}, ${letters})
   ON CONFLICT (act, at) DO UPDATE SET letters = known.letters + excluded.letters`

const both = (...parts: readonly { readonly postgres: string; readonly sqlite: string }[]) => ({
  postgres: parts.map(({ postgres }) => postgres).join('\n'),
  sqlite: parts.map(({ sqlite }) => sqlite).join('\n'),
})

const drawerOf = (letter: bigint): string => `(SELECT drawer FROM bartleby.letters WHERE id = ${letter})`

const partOfOrders = `(SELECT min(part) FROM bartleby.partitions JOIN bartleby.queues ON queues.id = queue_id WHERE name = 'orders')`

/** The capture of a letter of a plain queue once more, at another time. */
const repeatedCapture = (lying: bigint, createdAt: string, letter = 'letter_id'): string => `
  INSERT INTO bartleby.history (created_at, duration_ms, letter_id, series, letter_version)
  SELECT ${createdAt}, duration_ms, ${letter}, series, letter_version FROM bartleby.history WHERE letter_id = ${lying};`

const BREAKAGES: readonly Breakage[] = [
  {
    title: 'two letters of one source id',
    breaks: ['I2', 'S1'],
    sql: ({ lying, alsoLying }) => `
      DROP INDEX bartleby.letters_by_source;
      UPDATE bartleby.letters SET source_id = (SELECT source_id FROM bartleby.letters WHERE id = ${lying}) WHERE id = ${alsoLying}`,
    row: ({ lying, alsoLying }) => ({ engine: 'queues', letters: `${lying}, ${alsoLying}` }),
  },
  {
    title: 'a capture that is not in history',
    breaks: ['I2'],
    sql: ({ lying }) => `DELETE FROM bartleby.history WHERE letter_id = ${lying}`,
    row: ({ lying }) => ({ letter: String(lying), engine: 'queues' }),
  },
  {
    title: 'a second death that is not in history',
    breaks: ['I2'],
    sql: ({ reopened }) => `
      INSERT INTO bartleby.letter_attempts (letter_id, number, failed_at, superseded_at, error_class, error_message)
      SELECT letter_id, 99, failed_at, superseded_at, error_class, error_message FROM bartleby.letter_attempts
      WHERE letter_id = ${reopened}`,
    row: ({ reopened }) => ({ letter: String(reopened), relapses: '2', recorded: '1' }),
  },
  {
    title: 'a transition that is not in history',
    breaks: ['I3'],
    sql: ({ reopened }) =>
      `DELETE FROM bartleby.history WHERE letter_id = ${reopened} AND letter_version = 2`,
    row: ({ reopened }) => ({ letter: String(reopened), version: '3', recorded: '2', from: '1', to: '3' }),
  },
  {
    title: 'the latest transition that is not in history',
    breaks: ['I3'],
    sql: ({ discarded }) =>
      `DELETE FROM bartleby.history WHERE letter_id = ${discarded} AND letter_version = 2`,
    row: ({ discarded }) => ({ letter: String(discarded), status: 'Resolved', version: '2', to: '1' }),
  },
  {
    title: 'a transition that is in history twice',
    breaks: ['I3'],
    sql: ({ discarded }) => `
      INSERT INTO bartleby.history (created_at, duration_ms, letter_id, series, letter_version, correlation_id)
      SELECT created_at + 1, duration_ms, letter_id, series, letter_version, correlation_id FROM bartleby.history
      WHERE letter_id = ${discarded} AND letter_version = 2`,
    row: ({ discarded }) => ({ letter: String(discarded), version: '2', recorded: '3' }),
  },
  {
    title: 'a capture that is in history twice',
    breaks: ['I3'],
    sql: ({ lying }) => repeatedCapture(lying, 'created_at'),
    row: ({ lying }) => ({ letter: String(lying) }),
  },
  {
    title: 'a capture that is in history a second time, later',
    breaks: ['I3'],
    sql: ({ lying }) => repeatedCapture(lying, 'created_at + 1'),
    row: ({ lying }) => ({ letter: String(lying) }),
  },
  {
    title: 'a status that does not exist',
    breaks: ['I3', 'I6'],
    sql: ({ discarded }) => `UPDATE bartleby.letters SET status = 7 WHERE id = ${discarded}`,
    row: ({ discarded }) => ({ letter: String(discarded), status: '7' }),
  },
  {
    title: 'a resolved letter that lies in a dead queue',
    breaks: ['I3', 'I6'],
    sql: ({ discarded }) => `
      UPDATE bartleby.letters SET part = ${partOfOrders}, shelf = 0, serial = 1000000, laid_at = captured_at WHERE id = ${discarded}`,
    row: ({ discarded }) => ({ letter: String(discarded), status: 'Resolved' }),
  },
  {
    title: 'a pending letter that says how it ended',
    breaks: ['I3'],
    sql: ({ lying }) =>
      `UPDATE bartleby.letters SET resolved_by = 'nell', expired_at = 1 WHERE id = ${lying}`,
    row: ({ lying }) => ({ letter: String(lying), status: 'Pending', columns: 'resolved_by, expired_at' }),
  },
  {
    title: 'a discarded letter that says what a retry made of it',
    breaks: ['I3'],
    sql: ({ discarded }) =>
      `UPDATE bartleby.letters SET sent_as = 'an-item', sent_to = 'orders' WHERE id = ${discarded}`,
    row: ({ discarded }) => ({ letter: String(discarded), status: 'Resolved', columns: 'sent_as, sent_to' }),
  },
  {
    title: 'a resolved letter without the time of it',
    breaks: ['I3'],
    sql: ({ discarded }) => `UPDATE bartleby.letters SET resolved_at = NULL WHERE id = ${discarded}`,
    row: ({ discarded }) => ({ letter: String(discarded), columns: 'resolved_at' }),
  },
  {
    title: 'a letter that is leased and lies nowhere',
    breaks: ['I3'],
    sql: ({ discarded }) =>
      `UPDATE bartleby.letters SET leased = 1, lease_deadline = 1 WHERE id = ${discarded}`,
    row: ({ discarded }) => ({ letter: String(discarded), columns: 'leased, lease_deadline' }),
  },
  {
    title: 'a letter in a dead queue that lies on no shelf',
    breaks: ['I3', 'I6'],
    sql: ({ lying }) => `UPDATE bartleby.letters SET shelf = NULL WHERE id = ${lying}`,
    row: ({ lying }) => ({ letter: String(lying), status: 'Pending', columns: 'shelf' }),
  },
  {
    title: 'two items of one letter',
    breaks: ['I4', 'S1'],
    sql: ({ sent }) => `
      DROP INDEX bartleby.items_by_case;
      UPDATE bartleby.items SET case_id = ${sent} WHERE reference IS NULL AND payload =
        (SELECT payload FROM bartleby.letters WHERE id = ${sent}) AND case_id IS NULL`,
    row: ({ sent }) => ({ letter: String(sent), items: '2' }),
  },
  {
    title: 'a pending letter whose retry is on its way',
    breaks: ['I4'],
    sql: ({ sent, reopened }) => `UPDATE bartleby.items SET case_id = ${reopened} WHERE case_id = ${sent}`,
    row: ({ reopened }) => ({ letter: String(reopened), status: 'Pending', queue: 'orders' }),
  },
  {
    title: 'a confirmed letter whose retry is still on its way',
    breaks: ['I4'],
    sql: ({ sent, confirmed }) => `UPDATE bartleby.items SET case_id = ${confirmed} WHERE case_id = ${sent}`,
    row: ({ confirmed }) => ({ letter: String(confirmed), status: 'Resolved', resolution: 'retry' }),
  },
  {
    title: 'an item that lives beside its letter, known by its case',
    breaks: ['I5'],
    sql: ({ sent, lying }) => `UPDATE bartleby.items SET case_id = ${lying} WHERE case_id = ${sent}`,
    row: ({ lying }) => ({ letter: String(lying), queue: 'orders' }),
  },
  {
    title: 'an item that lives beside its letter, known by its id',
    breaks: ['I5'],
    sql: ({ lying, item }) => `UPDATE bartleby.letters SET source_id = '${item}' WHERE id = ${lying}`,
    row: ({ lying, item }) => ({ letter: String(lying), queue: 'work', item }),
  },
  {
    title: 'an item of a retry whose serial is none',
    breaks: ['I5'],
    sql: ({ sent }) => `UPDATE bartleby.items SET id = -id WHERE case_id = ${sent}`,
    row: () => ({ queue: 'orders' }),
  },
  {
    title: 'a count of letters that is wrong',
    breaks: ['I6'],
    sql: ({ lying }) => both(addToBooks(drawerOf(lying), 0, 1), addToBooks(drawerOf(lying), 2, -1)),
    row: () => ({ status: 'Pending', source: 'queues', queue: 'orders' }),
  },
  {
    title: 'a count of unconfirmed letters that is wrong',
    breaks: ['I6'],
    sql: ({ sent }) => addToBooks(drawerOf(sent), 5, -1),
    row: () => ({ status: 'unconfirmed', books: '0', found: '1', queue: 'orders' }),
  },
  {
    title: 'a count of a place that is not that of its drawers',
    breaks: ['I6'],
    sql: ({ lying }) => `${growPlace(drawerOf(lying), 0, 1)}; ${growPlace(drawerOf(lying), 4, 1)}`,
    row: () => ({ status: 'Pending', engine: 'queues', queue: 'orders' }),
  },
  {
    title: 'a drawer that tells of more retries than its place',
    breaks: ['I6'],
    sql: ({ sent }) => growDrawer(drawerOf(sent), 6, 1),
    row: () => ({ act: 'retried', engine: 'queues', queue: 'orders' }),
  },
  {
    title: 'an hour of a drawer that the office knows nothing of',
    breaks: ['I6'],
    sql: ({ lying }) => addToHour(drawerOf(lying), String(HOUR), 4, 1),
    row: () => ({ act: 'discarded', office: '0', places: '0', drawers: '1' }),
  },
  {
    title: 'minutes that are less than their hour',
    breaks: ['I6'],
    sql: ({ lying }) => `
      ${addToMinute(String(HOUR - 3_600_000_000), 5, 0)};
      ${addToMinute(String(HOUR), 5, 1)};
      ${addToHour('0', String(HOUR), 5, 2)};
      ${addToHour(drawerOf(lying), String(HOUR), 5, 2)};
      ${addToHour('-1', String(HOUR), 5, 2)}`,
    row: () => ({ act: 'expired', office: '2', places: '2', drawers: '2', minutes: '1' }),
  },
  {
    title: 'a letter in a drawer of another engine',
    breaks: ['I6'],
    sql: ({ lying }) => `UPDATE bartleby.letters SET engine = 'hmac' WHERE id = ${lying}`,
    row: ({ lying }) => ({ engine: 'hmac', letters: '1', letter: String(lying) }),
  },
  {
    title: 'a count of a partition that is wrong',
    breaks: ['I6'],
    sql: () => `UPDATE bartleby.partition_totals SET scheduled = scheduled + 1 WHERE part = ${partOfOrders}`,
    row: () => ({ queue: 'orders', partition: '0', count: 'scheduled', books: '1', found: '0' }),
  },
  {
    title: 'a sum of instants that is wrong by a microsecond',
    breaks: ['I6'],
    sql: () =>
      `UPDATE bartleby.partition_totals SET created_us = created_us + 1 WHERE part = ${partOfOrders}`,
    row: () => ({ queue: 'orders', count: 'sum of creation times' }),
  },
  {
    title: 'a retry with other bytes',
    breaks: ['I7'],
    sql: ({ sent }) => ({
      postgres: `UPDATE bartleby.items SET payload = '\\x00' WHERE case_id = ${sent}`,
      sqlite: `UPDATE items SET payload = x'00' WHERE case_id = ${sent}`,
    }),
    row: ({ sent }) => ({ letter: String(sent), letterBytes: '8', itemBytes: '1', queue: 'orders' }),
  },
  {
    title: 'a letter that was captured and is not accounted for',
    breaks: ['I11'],
    sql: ({ lying }) => addToBooks(drawerOf(lying), 4, 1),
    row: () => ({ captured: '12' }),
  },
  {
    title: 'a pending letter that was removed',
    breaks: ['I11'],
    sql: ({ reported }) =>
      both(
        addToBooks(drawerOf(reported), 0, -1),
        addToBooks(drawerOf(reported), 3, 1),
        same(`DELETE FROM bartleby.letters WHERE id = ${reported}`),
      ),
    row: ({ reported }) => ({ letter: String(reported), engine: 'http', operation: 'capture' }),
  },
  {
    title: 'a pending letter of a plain queue that was removed',
    breaks: ['I6', 'I11'],
    sql: ({ lying }) =>
      both(
        addToBooks(drawerOf(lying), 0, -1),
        addToBooks(drawerOf(lying), 3, 1),
        same(`DELETE FROM bartleby.letters WHERE id = ${lying}`),
      ),
    row: () => ({ queue: 'dead' }),
  },
  {
    title: 'a capture of a plain queue that names no letter',
    breaks: ['I2', 'I11'],
    sql: ({ lying }) => `UPDATE bartleby.history SET letter_id = NULL WHERE letter_id = ${lying}`,
    row: ({ lying }) => ({ letter: String(lying), engine: 'queues' }),
  },
  {
    title: 'captures of plain queues that name no letter and were there before',
    breaks: ['I11'],
    sql: ({ lying }) => repeatedCapture(lying, 'created_at', 'NULL').repeat(2),
    row: () => ({ engine: 'queues' }),
  },
  {
    title: 'a run of retention that says it took more than is counted',
    breaks: ['I11'],
    sql: () =>
      both(
        same(
          `INSERT INTO bartleby.history_series (engine, operation, status) VALUES ('office', 'remove', 0);`,
        ),
        {
          postgres: removal(`convert_to('${REPORT}', 'UTF8')`),
          sqlite: removal(`CAST('${REPORT}' AS BLOB)`),
        },
      ),
    row: () => ({ engine: 'queues', reported: '1', removed: '0' }),
  },
  {
    title: 'a letter that was removed and is in no report',
    breaks: ['I11'],
    sql: ({ expired }) =>
      both(
        addToBooks(drawerOf(expired), 2, -1),
        addToBooks(drawerOf(expired), 3, 1),
        same(`DELETE FROM bartleby.letters WHERE id = ${expired}`),
      ),
    row: () => ({ reported: '0', removed: '1' }),
  },
  {
    title: 'a run that did more than there was',
    breaks: ['R1'],
    sql: () => insertRun('running', null, 11),
    row: () => ({ run: 'r-1', kind: 'expire', state: 'running' }),
  },
  {
    title: 'a run that is over and a server is at',
    breaks: ['R1'],
    sql: () => insertRun('done', 'somebody', 10),
    row: () => ({ run: 'r-1', kind: 'expire', state: 'done' }),
  },
]

const insertRun = (state: string, owner: string | null, done: number): string => `
  INSERT INTO bartleby.runs (id, kind, about, subject, place, actor, state, started_at, ended_at, expected, done, owner)
  VALUES ('r-1', 'expire', '', '{}', '{}', 'nell', '${state}', 1, ${state === 'done' ? 2 : 'NULL'}, 10, ${done},
    ${owner === null ? 'NULL' : `'${owner}'`})`

const REPORT = '{"letters":{"queues":1},"history":3}'

const removal = (output: string): string => `
  INSERT INTO bartleby.history (created_at, duration_ms, series, correlation_id, output)
  SELECT 1800000100000000, 0, id, 'r-1', ${output} FROM bartleby.history_series WHERE operation = 'remove'`

describe.each(stores)('a store on $name', (store) => {
  let place: FreshStore
  let fates: Fates

  beforeAll(async () => {
    place = await store.fresh()
    fates = await fillStore(place.url)
  })

  afterAll(() => place?.dispose())

  it('keeps all promises when only the office has written to it', async () => {
    const { clean, invariants } = await verifyAt(place.url)
    expect(invariants.flatMap(({ violations }) => violations)).toEqual([])
    expect(clean).toBe(true)
    expect(invariants.map(({ invariant }) => invariant)).toEqual([
      'I2',
      'I3',
      'I4',
      'I5',
      'I6',
      'I7',
      'I9',
      'I10',
      'I11',
      'W1',
      'W2',
      'W3',
      'K1',
      'K2',
      'K3',
      'AZ1',
      'AZ2',
      'R1',
      'S1',
    ])
  })

  it.each(BREAKAGES)('with $title breaks $breaks', async ({ breaks, sql, row }) => {
    const copy = await copyOf(place)
    try {
      await tamper(copy.url, sql(fates))
      const { invariants } = await verifyAt(copy.url)
      const broken = invariants.filter((each) => each.broken > 0)
      expect(broken.map(({ invariant }) => invariant)).toEqual(breaks)
      expect(broken[0]?.violations[0]).toMatchObject({ invariant: breaks[0], row: row(fates) })
      const { code, out, err } = await bartleby(['verify', '--store', copy.url])
      expect(code).toBe(1)
      for (const invariant of breaks) expect(out).toContain(`✗ ${invariant}`)
      for (const [name, value] of Object.entries(row(fates))) expect(out).toContain(`${name}=${value}`)
      expect(err).toContain(`the store breaks ${breaks.join(', ')}`)
    } finally {
      await copy.dispose()
    }
  })

  it('shows the first violations and counts the others', async () => {
    const copy = await copyOf(place)
    const db = openDatabase(copy.url, { poolSize: 1 })
    try {
      await tamper(copy.url, 'DELETE FROM bartleby.history WHERE letter_version = 1 AND id > 1')
      const { invariants } = await verifyStore(db, { limit: 3 })
      const [captures] = invariants
      expect(captures?.violations).toHaveLength(3)
      expect(captures?.broken).toBe(10)
    } finally {
      await db.close()
      await copy.dispose()
    }
  })
})
