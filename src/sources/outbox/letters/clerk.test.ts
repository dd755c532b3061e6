import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { OutboxOffice, PLACES } from '../../../../test/world/outbox-office.ts'
import type { Log } from '../../../core/log.ts'
import { OutboxLetterClerk } from './clerk.ts'

/** Letters of this error cannot be filed. */
const BREAK = {
  postgres: `
    CREATE FUNCTION refuse_letter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'unfit'; END $$;
    CREATE TRIGGER refuse_letter BEFORE INSERT ON bartleby.letters FOR EACH ROW WHEN (NEW.error_message = 'unfit')
      EXECUTE FUNCTION refuse_letter()`,
  sqlite: `CREATE TRIGGER refuse_letter BEFORE INSERT ON letters WHEN NEW.error_message = 'unfit'
    BEGIN SELECT RAISE(ABORT, 'unfit'); END`,
}

const own = PLACES.filter(({ elsewhere }) => elsewhere === null)

describe.each(own)('the clerk of an outbox $name', (place) => {
  let office: OutboxOffice
  let clerk: OutboxLetterClerk
  let warnings: string[]
  beforeAll(async () => {
    office = await OutboxOffice.open(place)
    const { db } = office.store
    await db.transaction('test', (tx) => db.script(tx, BREAK[db.dialect]))
  })
  afterAll(() => office?.close())
  beforeEach(async () => {
    await office.begin()
    warnings = []
    const say = () => {}
    const log: Log = {
      debug: say,
      info: say,
      warn: (_details, message) => void warnings.push(message),
      error: say,
    }
    clerk = new OutboxLetterClerk({
      db: office.store.db,
      clock: office.store.clock,
      log,
      registers: office.store.registers,
      handles: () => office.posts,
      dispatch: () => {},
    })
  })
  afterEach(() => clerk.stop())

  /** A row that is dead, and of which nobody was told. */
  const dead = async (error: string) => {
    const id = await office.table.insert()
    await office.table.query(
      'UPDATE outbox_messages SET dead_at = created_at, letter_due = true, error = $1 WHERE dead_at IS NULL',
      error,
    )
    return id
  }
  const letters = () => office.countLetters()

  it('tells what there is when it starts, and what comes later', async () => {
    await dead('Error: no')
    clerk.start()
    await expect.poll(letters).toBe(1)
    await dead('Error: no')
    clerk.wake('orders')
    await expect.poll(letters).toBe(2)
    await dead('Error: no')
    office.store.clock.advance(1_000_001n)
    await expect.poll(letters).toBe(3)
  })

  it('does not let one row stand in the way of others', async () => {
    await dead('Error: no')
    await dead('Error: unfit')
    await dead('Error: no')
    await Promise.all(clerk.rounds.map((visits) => visits.now()))
    expect(await letters()).toBe(2)
    expect(warnings).toEqual(['the office was not told about a message'])
  })

  it('says once that an outbox cannot be read, and goes on when it can', async () => {
    await dead('Error: no')
    await office.table.query('ALTER TABLE outbox_messages RENAME TO elsewhere')
    clerk.start()
    await expect.poll(() => warnings).toHaveLength(1)
    clerk.wake('orders')
    await office.table.query('ALTER TABLE elsewhere RENAME TO outbox_messages')
    office.store.clock.advance(1_000_001n)
    await expect.poll(letters).toBe(1)
    expect(warnings).toHaveLength(1)
  })
})
