/** What operators are told besides: the extra member of events, and the headers of what was done or would be. */
import { type StoredEvent, stateName } from '../event.ts'
import type { Resolution } from '../ports.ts'
import type { Preview } from '../queue-reader.ts'
import type { KafkaCalls } from './call.ts'
import type { Answer } from './reply.ts'
import { extraText } from './views.ts'

/** When it is asked for; and always where an event cannot be published as it is, because the reasons are there. */
export const isShownInDetail = ({ facts }: StoredEvent, wanted: boolean): boolean =>
  wanted || facts.reasons.length > 0

/** The extra member of an event of a preview. */
export function extraOfShown(
  { events, details, omittedBytes }: Preview,
  index: number,
  wanted: boolean,
): string | null {
  const event = events[index]
  const detail = details[index] ?? null
  return event === undefined || detail === null
    ? null
    : extraText(event, { detail, withValue: wanted, omittedBytes })
}

/** The extra member of an event that was published, or would be. */
export async function extraOfResolution(
  { reader }: KafkaCalls,
  { event, outcome, warnings }: Resolution,
  { wanted, isDryRun }: { readonly wanted: boolean; readonly isDryRun: boolean },
): Promise<string | null> {
  if (!isShownInDetail(event, wanted)) return null
  const state = isDryRun ? stateName(event.state) : outcome
  try {
    return extraText(event, { detail: await reader.detail(event), withValue: wanted, state, warnings })
  } catch (error) {
    // What was published was published: that its past cannot be read now must not look like a failure.
    if (isDryRun) throw error
    return null
  }
}

/** What was done, or would be, and what is odd about it. */
export const outcomeHeaders = ({ outcome, warnings }: Resolution): Answer['headers'] => ({
  'Bartleby-Outcome': outcome,
  ...(warnings.length === 0 ? {} : { 'Bartleby-Warnings': warnings.join(',') }),
})
