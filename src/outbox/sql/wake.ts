/**
 * Waking dispatchers. A NOTIFY in every transaction makes all commits of a database wait for each other, so writers
 * notify only while a dispatcher waits: one row says so. It is a hint; dispatchers poll behind it.
 */
import type { Database } from '../../db/database.ts'
import { type Layout, layoutStatement } from '../layout.ts'

/** Says whether a dispatcher of the table waits to be woken. */
export function wakeSwitchOf(layout: Layout): (db: Database, waiting: boolean) => Promise<void> {
  if (!layout.hasWake) return async () => {}
  const hurry = layoutStatement(layout, 'hurry', `SELECT set_config('synchronous_commit', 'off', true)`)
  const flip = layoutStatement(
    layout,
    'waiting',
    `UPDATE ${layout.sqlWakeTable} SET waiting = $1::boolean WHERE waiting <> $1::boolean`,
  )
  return (db, waiting) =>
    db.transaction('outbox.waiting', async (tx) => {
      // A hint that is lost in a crash costs one poll: it need not wait for the disk.
      await Promise.all([tx.rows(hurry), tx.run(flip, waiting ? 'true' : 'false')])
    })
}
