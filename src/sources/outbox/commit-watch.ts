/** Noticing that something was added to a table: PostgreSQL tells, and SQLite counts commits in shared memory. */
import { DatabaseSync } from 'node:sqlite'
import type { Database } from '../../store/database.ts'
import type { StoreUrl } from '../../store/store-url.ts'

/** Often enough that a message leaves well within 50 ms; 50 looks a second cost a thousandth of a core. */
const LOOK_MS = 20

export interface CommitWatch {
  stop(): void
}

/** Calls `wake` when something may have been added to the table whose writers notify `channel`. */
export async function announceCommits(
  db: Database,
  store: StoreUrl,
  channel: string,
  wake: () => void,
): Promise<CommitWatch | undefined> {
  const watch = store.kind === 'sqlite' ? watchCommits(store.path, wake) : undefined
  await db.listen(channel, wake)
  // What was committed before anybody listened was not announced.
  wake()
  return watch
}

/** Calls `changed` soon after another connection, of any program, has committed to the file; keeps the process alive until it is stopped. */
function watchCommits(path: string, changed: () => void): CommitWatch {
  const connection = new DatabaseSync(path, { readOnly: true })
  const look = connection.prepare('PRAGMA data_version')
  const version = () => {
    try {
      return look.get()?.data_version
    } catch {
      // The file is locked by somebody who sets it up anew, or away: the polls of the dispatcher meet that, too.
      return undefined
    }
  }
  let known = version()
  const timer = setInterval(() => {
    const found = version()
    if (found === known || found === undefined) return
    known = found
    changed()
  }, LOOK_MS)
  return {
    stop() {
      clearInterval(timer)
      connection.close()
    },
  }
}
