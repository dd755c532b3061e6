/** What an errand would do, at this moment: the same code up to and including the guard, without taking or writing anything. */
import { STATE } from '../event.ts'
import { earlierOpenSameKey } from '../later-same-key.ts'
import { type Ended, stopped } from './attempt.ts'
import type { Errand, Goal } from './errand.ts'
import type { ReturnParts } from './parts.ts'
import { prepare, withLater } from './prepare.ts'
import { rerunOf } from './resend.ts'
import { eventOfLetter, glance } from './seek.ts'

/** Says how the errand would end if Kafka took what is sent. */
export async function rehearse(parts: ReturnParts, goal: Goal, errand: Errand): Promise<Ended> {
  const seen = await parts.db.session('kafka.rehearse', async (session) => {
    const event = await glance(session, goal)
    if (event === null) return stopped({ why: 'empty' })
    if (goal.by === 'queue' && goal.dlqId !== null && goal.dlqId !== event.dlqId) {
      return stopped({ why: 'not_next', expected: event.dlqId })
    }
    if (event.state === STATE.uncertain) {
      const rerun = await rerunOf(parts, session, event, errand)
      if ('why' in rerun) return stopped(rerun)
      const { eventId, record, hasLater } = rerun
      const warnings = withLater(event.facts.warnings, hasLater)
      return { outcome: 'published', event, eventId, record, warnings } satisfies Ended
    }
    const before = goal.by === 'letter' ? await earlierOpenSameKey(session, event) : null
    if (before !== null) {
      const rowKey = (await eventOfLetter(session, before))?.rowKey ?? ''
      return stopped({ why: 'earlier_same_key', before: rowKey })
    }
    return event
  })
  if ('outcome' in seen) return seen
  const prepared = await prepare(parts, seen, errand)
  switch (prepared.outcome) {
    case 'refused':
      return stopped(prepared.obstacle)
    case 'discard':
      return { outcome: 'discarded', event: seen, reason: prepared.reason, warnings: prepared.warnings }
    case 'publish': {
      const { eventId, record, warnings } = prepared
      return { outcome: 'published', event: seen, eventId, record, warnings }
    }
  }
}
