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
export type { QueueView as QueueOverview } from '../../../src/queues/shapes.ts'
export type * from '../../../src/sources/engines/shapes.ts'

import type {
  ActivityRange,
  LetterFilter as AskedLetters,
  LetterStatus,
  OfficeOverview,
  SignatureGroup as PlainGroup,
  SignatureDetail,
} from '../../../src/client/letter-types.ts'

export const ROLES = ['viewer', 'operator', 'admin'] as const
export type Role = (typeof ROLES)[number]

export interface Environment {
  readonly name: string
  readonly colour: string
}

export interface Session {
  readonly signedIn: boolean
  readonly needsToken: boolean
  readonly name: string | null
  readonly role: Role | null
  /** What may be acted on; letters of Kafka need a token where the Kafka part has some. */
  readonly reach: 'all' | 'all-but-kafka' | 'kafka' | null
  readonly version: string
  readonly environment: Environment
  readonly sources: { readonly outbox: boolean; readonly webhooks: boolean; readonly kafka: boolean }
  /** All sources of letters, and whether this server has some of each. */
  readonly navigation: readonly { readonly name: string; readonly title: string; readonly present: boolean }[]
  readonly demo: { readonly healingSignature: string; readonly stormSignature: string } | null
}

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

export interface Settings {
  readonly version: string
  readonly node: string
  readonly startedAtUtc: string
  readonly store: { readonly kind: 'sqlite' | 'postgres'; readonly place: string }
  readonly retentionDays: number
  readonly environment: Environment
  readonly tokens: readonly { readonly name: string; readonly role: Role }[] | null
  readonly tokensConfigured: boolean
}

export interface Verification {
  readonly state: 'never' | 'running' | 'done' | 'failed'
  readonly startedAtUtc: string | null
  readonly finishedAtUtc: string | null
  readonly progress: { readonly label: string; readonly done: number; readonly expected: number } | null
  readonly error: string | null
  readonly checks: readonly {
    readonly id: string
    readonly title: string
    readonly holds: boolean
    readonly findings: number
    readonly samples: readonly string[]
  }[]
}
