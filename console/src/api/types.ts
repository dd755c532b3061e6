/** What the server answers. Letters, signatures and history are as the client library has them. */

export type { Page } from '../../../src/client/envelope.ts'
export type * from '../../../src/client/history.ts'
export type {
  ActivityName as SeriesName,
  ActivityRange as Range,
  LetterActivity as Activity,
  LetterAttempt,
  LetterCounts,
  LetterDetail,
  LetterEvent,
  LetterItem,
  LetterKey,
  LetterStatus,
  LetterTotal as Total,
  OfficeOverview as Overview,
  RetryPreview,
  RetryReceipt,
} from '../../../src/client/letter-types.ts'
export { ROLES, type Role } from '../../../src/core/roles.ts'
export type { Session } from '../../../src/http/session/shapes.ts'
export type { Settings } from '../../../src/observe/shapes.ts'
export type { QueueView as QueueOverview } from '../../../src/queues/shapes.ts'
export type * from '../../../src/sources/azure/shapes.ts'
export type * from '../../../src/sources/engines/shapes.ts'
export type { Verification } from '../../../src/verify/shapes.ts'

import type {
  ActivityRange,
  LetterFilter as AskedLetters,
  LetterStatus,
  OfficeOverview,
  SignatureGroup as PlainGroup,
  SignatureDetail,
} from '../../../src/client/letter-types.ts'
import type { Session } from '../../../src/http/session/shapes.ts'

export type Environment = Session['environment']

/** The counts that live updates carry. */
export interface Standing extends Readonly<Record<LetterStatus, number>> {
  /** Captured ever. */
  readonly captured: number
  /** Sent back, outcome not known yet. */
  readonly unconfirmed: number
}

export type Health = OfficeOverview['sources'][number]['health']

export const RANGES = ['1h', '24h', '7d', '30d'] as const satisfies readonly ActivityRange[]

export type Outcomes = SignatureDetail['outcomes']

export interface SignatureGroup extends PlainGroup {
  /** Only on the group's own page. */
  readonly outcomes?: Outcomes
}

/** Filters of letters under the names of the API. */
export type LetterFilter = Readonly<Partial<Record<LetterFilterKey, string>>>
export type LetterFilterKey = keyof AskedLetters
