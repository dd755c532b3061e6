/** What `top` shows, asked of a server in one go. */
import type { Page } from '../../client/envelope.ts'
import type { LetterCounts, LetterItem, SignatureGroup } from '../../client/letter-types.ts'
import type { QueueOverview } from '../../client/source-types.ts'
import { type CallOffice, listAll } from '../office.ts'

export interface Look {
  readonly version: string
  readonly environment: string
  readonly counts: LetterCounts
  readonly groups: readonly SignatureGroup[]
  readonly queues: readonly QueueOverview[]
  readonly newest: readonly LetterItem[]
}

/** As much as a tall screen shows. */
const MOST = 50
/** More queues than these are not looked at every other second. */
const MOST_QUEUES = 1_000

interface Session {
  readonly version: string
  readonly environment: { readonly name: string }
}

/** How the office is at this moment. */
export async function lookAt(call: CallOffice): Promise<Look> {
  const [session, counts, groups, queues, newest] = await Promise.all([
    call<Session>('GET', '/api/session'),
    call<LetterCounts>('GET', '/api/counts?by=source,status'),
    call<Page<SignatureGroup>>('GET', `/api/signatures?limit=${MOST}`),
    listAll<QueueOverview>({ call }, '/api/queues', {}, MOST_QUEUES),
    call<Page<LetterItem>>('GET', `/api/dlq?limit=${MOST}`),
  ])
  return {
    version: session.version,
    environment: session.environment.name,
    counts,
    groups: groups.items,
    queues: queues.toSorted((a, b) => depthOf(b) - depthOf(a)),
    newest: newest.items,
  }
}

/** All that lies in a queue, and what died there. */
const depthOf = ({ ready, leased, scheduled, held, dead, letters }: QueueOverview): number =>
  ready + leased + scheduled + held + dead + letters
