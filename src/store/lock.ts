/** Leased locks with an owner: a row says who works on something and until when. A dead holder loses the lock when its lease ends. */
import { type Clock, later } from '../core/clock.ts'
import { type Database, sql, type Transaction } from './database.ts'
import type { Migration } from './migrations.ts'

export const lockMigration: Migration = {
  number: 1,
  name: 'locks',
  postgres: `CREATE TABLE bartleby.locks (name text PRIMARY KEY, owner text NOT NULL, deadline bigint NOT NULL);`,
  sqlite: `CREATE TABLE locks (name TEXT PRIMARY KEY, owner TEXT NOT NULL, deadline INTEGER NOT NULL) STRICT;`,
}

/**
 * Takes a free or lapsed lock, or renews our own; arguments are parameters such as `$1`. By primary key; nobody else can take the row before
 * the transaction ends, so a statement that begins with this holds the lock until its work is committed.
 */
export const takingLock = ({
  name,
  owner,
  deadline,
  now,
}: Readonly<Record<'name' | 'owner' | 'deadline' | 'now', string>>): string =>
  `INSERT INTO bartleby.locks AS held (name, owner, deadline) VALUES (${name}, ${owner}, ${deadline})
   ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, deadline = excluded.deadline
   WHERE held.owner = excluded.owner OR held.deadline < ${now}`

const takeLock = sql('locks.take', takingLock({ name: '$1', owner: '$2', deadline: '$3', now: '$4' }))
/** Changes nothing, but keeps the row until the transaction ends. */
const holdLock = sql('locks.hold', 'UPDATE bartleby.locks SET owner = owner WHERE name = $1 AND owner = $2')
const dropLock = sql('locks.drop', 'DELETE FROM bartleby.locks WHERE name = $1 AND owner = $2')

/** `owner` must be unique among all running servers. */
export function leasedLock(db: Database, clock: Clock, name: string, owner: string) {
  return {
    /** False when another owner holds it. */
    async take(leaseUs: bigint): Promise<boolean> {
      const now = clock.now()
      const taken = await db.session('lock', (session) =>
        session.run(takeLock, name, owner, later(now, leaseUs), now),
      )
      return taken === 1
    },
    /** Whether nobody else had the lock since, even if the lease is over. If so, nobody gets it before the transaction ends. */
    async hold(tx: Transaction): Promise<boolean> {
      return (await tx.run(holdLock, name, owner)) === 1
    },
    /** Does nothing when the lock was lost. */
    async drop(): Promise<void> {
      await db.session('lock', (session) => session.run(dropLock, name, owner))
    },
  }
}
