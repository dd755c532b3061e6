/** Stores that a demo takes: in memory, empty, or made by a demo. The last is known by the reference of its queue `invoices`. */
import { ConfigError, withoutPassword } from '../core/settings/config-error.ts'
import { readPlaceCounts } from '../letters/numbers/summary.ts'
import { requireThisVersion } from '../migrations.ts'
import { readQueue, readQueues } from '../queues/records.ts'
import { checkListQueues } from '../queues/validate.ts'
import type { Session } from '../store/database.ts'
import { StoreTooNew, StoreTooOld } from '../store/migrations.ts'
import { withDatabase } from '../store/open.ts'
import { parseStoreUrl } from '../store/store-url.ts'
import type { DemoSource } from './config.ts'
import { MARK } from './story/story.ts'

const MARKED_QUEUE = 'invoices'

/** Before anything is opened. Refuses a store with letters, queues or channels of others, unchanged. */
export async function checkDemoStore(
  store: string,
  sources: readonly DemoSource[],
): Promise<{ readonly isNew: boolean }> {
  if (parseStoreUrl(store).kind === 'memory') return { isNew: true }
  const owner = await withDatabase(store, (db) =>
    db.session('demo.owner', (session) => ownerOf(session, sources)),
  )
  if (owner === 'others')
    throw new ConfigError([refusalOf(store, 'holds letters, queues or channels that the demo did not make')])
  if (owner === 'unknown')
    throw new ConfigError([refusalOf(store, 'was made by another version of Bartleby')])
  return { isNew: owner === 'nobody' }
}

async function ownerOf(
  session: Session,
  sources: readonly DemoSource[],
): Promise<'nobody' | 'demo' | 'others' | 'unknown'> {
  try {
    await requireThisVersion(session)
  } catch (error) {
    if (error instanceof StoreTooOld) return error.found === 0 ? 'nobody' : 'unknown'
    if (error instanceof StoreTooNew) return 'unknown'
    throw error
  }
  if ((await readQueue(session, MARKED_QUEUE))?.reference === MARK) return 'demo'
  const hasQueues = (await readQueues(session, checkListQueues({ limit: 1 }))).length > 0
  const hasLetters = (await readPlaceCounts(session)).some(({ ever }) => ever.arrived > 0)
  if (hasQueues || hasLetters) return 'others'
  for (const { demo } of sources) if (await demo?.isInUse?.(session)) return 'others'
  return 'nobody'
}

const refusalOf = (store: string, why: string): string =>
  `store: '${withoutPassword(store)}' ${why}, and invented letters must not mix with yours; leave --store out to run ` +
  'the demo in memory, or name a store that is new, such as sqlite:./data/demo.db'
