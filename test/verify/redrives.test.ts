/** What redrives promise, broken by hand: verify finds it, names the row, and finds nothing else. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reused } from '../world/reused-store.ts'
import { type FreshStore, stores } from '../world/stores.ts'
import { verifyAt } from '../world/verified.ts'
import { copyOf } from './busy-store.ts'
import { fillRedriven, type Redriven } from './redriven-store.ts'
import { type Tampering, tamper } from './tampering.ts'

interface Breakage {
  readonly title: string
  readonly breaks: readonly string[]
  readonly sql: (redriven: Redriven) => Tampering
  /** What the violations say, and the row of the first. */
  readonly says: readonly string[]
  readonly row: (redriven: Redriven) => Record<string, string>
}

const numberOf = ({ id }: Redriven['done']): string =>
  `(SELECT number FROM bartleby.redrives WHERE id = '${id}')`

/** Rows of history of what sent a letter. */
const retryOf = (letter: bigint): string =>
  `letter_id = ${letter} AND series IN (SELECT id FROM bartleby.history_series WHERE operation = 'retry')`

const BREAKAGES: readonly Breakage[] = [
  {
    title: 'letters of a key that were sent in another order',
    breaks: ['I9'],
    sql: ({ first }) => `
      UPDATE bartleby.letters SET sent_as = substr(sent_as, 1, 18) || '999999999' WHERE id = ${first}`,
    says: ['was sent before letter'],
    row: ({ done, first, second }) => ({
      redrive: done.id,
      key: 'k1',
      letter: String(second),
      before: String(first),
    }),
  },
  {
    title: 'a letter that was sent past a pending one of its key',
    breaks: ['I9'],
    sql: ({ confirmed }) => `UPDATE bartleby.letters SET instance_id = 'k9' WHERE id = ${confirmed}`,
    says: ['captured before it, was pending'],
    row: ({ done, confirmed, left }) => ({
      redrive: done.id,
      key: 'k9',
      letter: String(confirmed),
      before: String(left),
    }),
  },
  {
    title: 'a lane that counts more than it has passed',
    breaks: ['I10', 'R1'],
    sql: ({ paused }) =>
      `UPDATE bartleby.redrive_lanes SET sent = sent + 1 WHERE redrive = ${numberOf(paused)}`,
    says: ['has passed 1 letters, and counts 2', 'has 2 sent, 0 skipped and 0 failed letters of 3'],
    row: ({ paused }) => ({ redrive: paused.id, planned: '3', sent: '2', passed: '1' }),
  },
  {
    title: 'a letter that is missing from its lane',
    breaks: ['I10'],
    sql: ({ paused, remaining }) =>
      `DELETE FROM bartleby.redrive_letters WHERE redrive = ${numberOf(paused)} AND letter = ${remaining}`,
    says: ['was planned with 3 letters, and has 2'],
    row: ({ paused }) => ({ redrive: paused.id, planned: '3', found: '2' }),
  },
  {
    title: 'a letter that was left out without a note',
    breaks: ['I10'],
    sql: ({ done }) => `DELETE FROM bartleby.redrive_exceptions WHERE redrive = ${numberOf(done)}`,
    says: ['counts as sent, and history does not have it', 'counts 1 skipped and 0 failed letters'],
    row: ({ done, skipped }) => ({ redrive: done.id, letter: String(skipped), recorded: '0' }),
  },
  {
    title: 'a letter that is noted as failed, and counted as skipped',
    breaks: ['I10'],
    sql: ({ done }) => `UPDATE bartleby.redrive_exceptions SET outcome = 1 WHERE redrive = ${numberOf(done)}`,
    says: ['and has notes of 0 and 1'],
    row: ({ done }) => ({ redrive: done.id, skipped: '1', failed: '0' }),
  },
  {
    title: 'a note on a letter that is not in the redrive',
    breaks: ['I10'],
    sql: ({ done, left }) => `
      INSERT INTO bartleby.redrive_exceptions (redrive, letter, outcome, reason) VALUES (${numberOf(done)}, ${left}, 0, 'gone')`,
    says: ['has notes on 2 letters, and left out 1'],
    row: ({ done }) => ({ redrive: done.id, notes: '2', leftOut: '1' }),
  },
  {
    title: 'a note on a letter whose turn has not come',
    breaks: ['I10'],
    sql: ({ paused, remaining }) => `
      INSERT INTO bartleby.redrive_exceptions (redrive, letter, outcome, reason)
      VALUES (${numberOf(paused)}, ${remaining}, 0, 'gone')`,
    says: ['is noted as left out before it was its turn', 'has notes on 1 letters, and left out 0'],
    row: ({ paused, remaining }) => ({ redrive: paused.id, letter: String(remaining) }),
  },
  {
    title: 'a retry that is not in history',
    breaks: ['I10'],
    sql: ({ first }) => `UPDATE bartleby.history SET output = NULL WHERE ${retryOf(first)}`,
    says: ['counts as sent, and history does not have it'],
    row: ({ done, first }) => ({ redrive: done.id, letter: String(first), recorded: '0' }),
  },
  {
    title: 'a letter that was sent twice',
    breaks: ['I10'],
    sql: ({ confirmed }) => {
      const sent = (column: string) =>
        `(SELECT ${column} FROM bartleby.history AS sent WHERE ${retryOf(confirmed)})`
      return `UPDATE bartleby.history SET output = ${sent('output')}, series = ${sent('series')}
              WHERE letter_id = ${confirmed} AND letter_version = 3`
    },
    says: ['was sent 2 times'],
    row: ({ done, confirmed }) => ({ redrive: done.id, letter: String(confirmed), recorded: '2' }),
  },
  {
    title: 'a lane that has forgotten how far it was',
    breaks: ['I10'],
    sql: ({ paused }) =>
      `UPDATE bartleby.redrive_lanes SET at_captured = 0, at_letter = 0 WHERE redrive = ${numberOf(paused)}`,
    says: ['was sent before it was its turn', 'sent it, which has not', 'has passed 0 letters, and counts 1'],
    row: ({ paused }) => ({ redrive: paused.id, recorded: '1' }),
  },
  {
    title: 'more heard of than was sent',
    breaks: ['I10'],
    sql: ({ done }) => ({
      postgres: `INSERT INTO bartleby.redrive_outcome_deltas (redrive, confirmed, returned) VALUES (${numberOf(done)}, 1, 0)`,
      sqlite: `UPDATE redrive_outcomes SET confirmed = confirmed + 1 WHERE redrive = ${numberOf(done)}`,
    }),
    says: ['heard of 4 letters, and has sent 3'],
    row: ({ done }) => ({ redrive: done.id, sent: '3', confirmed: '2', returned: '2' }),
  },
  {
    title: 'letters that came back, and fewer that were heard of',
    breaks: ['I10'],
    sql: ({ done }) => ({
      postgres: `INSERT INTO bartleby.redrive_outcome_deltas (redrive, confirmed, returned) VALUES (${numberOf(done)}, 0, -1)`,
      sqlite: `UPDATE redrive_outcomes SET returned = returned - 1 WHERE redrive = ${numberOf(done)}`,
    }),
    says: ['counts 1 confirmed and 1 returned letters, and has 1 and 2'],
    row: ({ done }) => ({ redrive: done.id, confirmed: '1', returned: '1' }),
  },
  {
    title: 'a letter that was confirmed, and none that was heard of',
    breaks: ['I10'],
    sql: ({ done }) => ({
      postgres: `INSERT INTO bartleby.redrive_outcome_deltas (redrive, confirmed, returned) VALUES (${numberOf(done)}, -1, 0)`,
      sqlite: `UPDATE redrive_outcomes SET confirmed = confirmed - 1 WHERE redrive = ${numberOf(done)}`,
    }),
    says: ['counts 0 confirmed and 2 returned letters, and has 1 and 2'],
    row: ({ done }) => ({ redrive: done.id, confirmed: '0', returned: '2' }),
  },
  {
    title: 'a run that is over and has done less than its redrive',
    breaks: ['R1'],
    sql: ({ done }) => `UPDATE bartleby.runs SET done = done - 1 WHERE id = '${done.id}'`,
    says: [
      'has 3 sent, 1 skipped and 0 failed letters of 4, and its run counts 2 sent, 1 skipped and 0 failed letters of 4',
    ],
    row: ({ done }) => ({ redrive: done.id, lanes: '3,1,0', run: '2,1,0' }),
  },
  {
    title: 'a run that has skipped what its redrive has sent',
    breaks: ['R1'],
    sql: ({ done }) =>
      `UPDATE bartleby.runs SET done = done - 1, skipped = skipped + 1 WHERE id = '${done.id}'`,
    says: ['and its run counts 2 sent, 2 skipped'],
    row: ({ done }) => ({ redrive: done.id, lanes: '3,1,0', run: '2,2,0' }),
  },
  {
    title: 'a run that expects more letters than its redrive has',
    breaks: ['R1'],
    sql: ({ paused }) => `UPDATE bartleby.runs SET expected = expected + 1 WHERE id = '${paused.id}'`,
    says: ['has 1 sent, 0 skipped and 0 failed letters of 3, and its run counts 1 sent'],
    row: ({ paused }) => ({ redrive: paused.id, lanes: '1,0,0', run: '1,0,0' }),
  },
  {
    title: 'a letter that names a redrive which did not send it',
    breaks: ['I10'],
    sql: ({ done, left }) => `UPDATE bartleby.letters SET redrive = ${numberOf(done)} WHERE id = ${left}`,
    says: ['sent it, which has not'],
    row: ({ done, left }) => ({ redrive: done.id, letter: String(left) }),
  },
  {
    title: 'a redrive that is done, and a run of it that goes on',
    breaks: ['R1'],
    sql: ({ done }) => `UPDATE bartleby.runs SET state = 'running', ended_at = NULL WHERE id = '${done.id}'`,
    says: ['is done, and its run running'],
    row: ({ done }) => ({ redrive: done.id, state: 'done', run: 'running' }),
  },
  {
    title: 'a redrive that goes on, and no run of it',
    breaks: ['R1'],
    sql: ({ paused }) => `DELETE FROM bartleby.runs WHERE id = '${paused.id}'`,
    says: ['is paused, and its run is not there'],
    row: ({ paused }) => ({ redrive: paused.id, state: 'paused', run: '-' }),
  },
  {
    title: 'a run of a redrive that is not there',
    breaks: ['R1'],
    sql: ({ paused }) => `UPDATE bartleby.redrives SET state = 'forgotten' WHERE id = '${paused.id}'`,
    says: ['is not there, and its run paused'],
    row: ({ paused }) => ({ redrive: paused.id, state: '-', run: 'paused' }),
  },
]

describe.each(stores)('a store with redrives on $name', (kind) => {
  const store = reused(kind)
  let place: FreshStore
  let redriven: Redriven

  beforeAll(async () => {
    const filled = await fillRedriven(store)
    place = filled.place
    redriven = filled.redriven
  })

  afterAll(() => place?.dispose())

  it('keeps all promises when only the office has written to it', async () => {
    expect(redriven.done.counts).toMatchObject({ planned: 4, sent: 3, skipped: 1, confirmed: 1, returned: 2 })
    expect(redriven.paused.counts).toMatchObject({ planned: 3, sent: 1, remaining: 2 })
    const { clean, invariants } = await verifyAt(place.url)
    expect(invariants.flatMap(({ violations }) => violations)).toEqual([])
    expect(clean).toBe(true)
  })

  it.each(BREAKAGES)('with $title breaks $breaks', async ({ breaks, sql, says, row }) => {
    const copy = await copyOf(place)
    try {
      await tamper(copy.url, sql(redriven))
      const { invariants } = await verifyAt(copy.url)
      const broken = invariants.filter((each) => each.broken > 0)
      expect(broken.map(({ invariant }) => invariant)).toEqual(breaks)
      const violations = broken.flatMap((each) => each.violations)
      expect(violations.map(({ what }) => what)).toEqual(says.map((words) => expect.stringContaining(words)))
      expect(violations[0]).toMatchObject({ row: row(redriven) })
    } finally {
      await copy.dispose()
    }
  })
})
