/** Failures of systems that have no queue here and report over `POST /api/dlq`, as their workers would write them. */

import type { JsonObject } from '../api/json-body.ts'
import type { ErrorDescription } from '../core/thrown.ts'
import type { LetterSummary } from '../letters/letter.ts'
import { readReport } from '../letters/reports/report.ts'
import type { Office } from '../office.ts'
import { CUSTOMERS, label, type Occasion, signUp } from './payloads.ts'
import { customerExists, feedUnreadable, templateBroken } from './troubles.ts'

interface Reporter {
  readonly weight: number
  readonly actor: string
  report(occasion: Occasion): JsonObject
}

const failureOf = ({ errorClass, errorMessage, errorStack }: ErrorDescription): JsonObject => ({
  errorClass,
  errorMessage,
  ...(errorStack === null ? {} : { errorStack }),
})

const REPORTERS: readonly Reporter[] = [
  {
    weight: 3,
    actor: 'crm',
    report: (occasion) => ({
      engine: 'http',
      instanceId: `crm-${occasion.chance.whole(1, 3)}`,
      originalQueue: 'sign-ups',
      originalMessage: signUp(occasion).toString(),
      dequeueCount: occasion.chance.whole(1, 5),
      ...failureOf(customerExists(occasion.chance.pick(CUSTOMERS).email)),
    }),
  },
  {
    weight: 2,
    actor: 'mailer',
    report: (occasion) => ({
      engine: 'http',
      instanceId: 'mailer-1',
      originalQueue: 'sign-ups',
      originalMessage: signUp(occasion).toString(),
      headers: { template: 'welcome.html', locale: 'de' },
      dequeueCount: 3,
      ...failureOf(templateBroken('welcome.html')),
    }),
  },
  {
    weight: 1,
    actor: 'release-feed',
    // An engine without a queue: its letters can be read and discarded, and there is nowhere to send them.
    report: (occasion) => ({
      engine: 'update-publisher',
      instanceId: 'release-feed',
      originalMessage: label(occasion).toString('base64'),
      originalMessageEncoding: 'base64',
      dequeueCount: 1,
      ...failureOf(feedUnreadable(occasion.chance.whole(10, 900))),
    }),
  },
]

/** Files one such failure. */
export async function reportFailure(office: Office, occasion: Occasion): Promise<LetterSummary> {
  const { letters } = office
  const { actor, report } = occasion.chance.pickBy(REPORTERS)
  const fields = { ...report(occasion), sourceId: `${actor}-${occasion.chance.hex(12)}` }
  const context = {
    engines: letters.engines,
    now: occasion.now,
    correlationId: occasion.chance.uuid(),
    actor,
  }
  return (await letters.capture(readReport(fields, context))).letter
}
