/**
 * Leased, owned locks: a row that says who works on something and until when. A holder that dies loses the
 * lock when its lease ends; nothing has to be cleaned up.
 */
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
 * Takes a free or lapsed lock, or renews our own; what is given are places of parameters, such as `$1`. One row by primary key, which nobody else can take before the transaction
 * ends: a statement that begins with this and works only when it changed a row holds the lock until its work is committed.
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
/** Changes nothing, but nobody else can take the row before the transaction ends. */
const holdLock = sql('locks.hold', 'UPDATE bartleby.locks SET owner = owner WHERE name = $1 AND owner = $2')
const dropLock = sql('locks.drop', 'DELETE FROM bartleby.locks WHERE name = $1 AND owner = $2')

/** The lock `name` as seen by `owner`, who must be unique among all running servers. */
export function leasedLock(db: Database, clock: Clock, name: string, owner: string) {
  return {
    /** Takes or renews the lock for `leaseUs`; false when another owner holds it. */
    async take(leaseUs: bigint): Promise<boolean> {
      const now = clock.now()
      const taken = await db.session('lock', (session) =>
        session.run(takeLock, name, owner, later(now, leaseUs), now),
      )
      return taken === 1
    },
    /**
     * Whether nobody else has had the lock since it was taken, also when its lease is over. If so, nobody gets it before the
     * transaction ends: what that writes is still the holder's to write.
     */
    async hold(tx: Transaction): Promise<boolean> {
      return (await tx.run(holdLock, name, owner)) === 1
    },
    /** Gives the lock up; nothing happens when it was lost meanwhile. */
    async drop(): Promise<void> {
      await db.session('lock', (session) => session.run(dropLock, name, owner))
    },
  }
}
