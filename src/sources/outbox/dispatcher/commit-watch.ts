/** Notices new messages: PostgreSQL notifies, SQLite counts commits in shared memory. */
import { DatabaseSync } from 'node:sqlite'
import type { Log } from '../../../core/log.ts'
import { Rounds } from '../../../core/rounds.ts'
import { systemClock } from '../../../core/system-clock.ts'
import type { DispatcherParts } from './dispatcher.ts'

/** A message leaves well within 50 ms; 50 looks a second cost a thousandth of a core. */
const LOOK_US = 20_000n

export interface CommitWatch {
  readonly rounds: readonly Rounds[]
  stop(): void
}

export async function announceCommits(
  { name, db, store, log }: DispatcherParts,
  channel: string,
  wake: () => void,
): Promise<CommitWatch | undefined> {
  const watch = store.kind === 'sqlite' ? watchCommits(name, store.path, log, wake) : undefined
  await db.listen(channel, wake)
  // Earlier commits were not announced.
  wake()
  return watch
}

/** Calls `changed` soon after any other connection has committed to the file. Keeps the process alive until it is stopped. */
function watchCommits(name: string, path: string, log: Log, changed: () => void): CommitWatch {
  const connection = new DatabaseSync(path, { readOnly: true })
  const look = connection.prepare('PRAGMA data_version')
  const version = () => {
    try {
      return look.get()?.data_version
    } catch {
      // Locked for a moment, or away: the dispatcher's polls meet that too.
      return undefined
    }
  }
  let known = version()
  const looks = new Rounds({
    // Commits of other programs follow the system's clock.
    ...{ name: `outbox.commits:${name}`, clock: systemClock(), log, everyUs: LOOK_US },
    act: () => {
      const found = version()
      if (found === known || found === undefined) return
      known = found
      changed()
    },
    trouble: 'commits to the outbox were not noticed; it is polled',
    isFirstLater: true,
    holdsProcess: true,
  })
  looks.start()
  return {
    rounds: looks.rounds,
    stop() {
      void looks.stop()
      connection.close()
    },
  }
}
