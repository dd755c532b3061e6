/** What the server answers. Letters, signatures and history are as the client library has them. */
export type * from '../../../src/client/history.ts'
export type {
  LetterAttempt,
  LetterCounts,
  LetterDetail,
  LetterEvent,
  LetterItem,
  LetterKey,
  LetterStatus,
  RetryPreview,
  RetryReceipt,
} from '../../../src/client/letter-types.ts'
export type * from '../../../src/client/source-types.ts'

import type { SignatureGroup as PlainGroup } from '../../../src/client/letter-types.ts'

export interface Page<Item> {
  readonly items: readonly Item[]
  readonly continuationToken: string | null
}

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
export interface Standing {
  readonly Pending: number
  readonly Resolved: number
  readonly Expired: number
  /** Captured ever. */
  readonly captured: number
  /** Sent back, outcome not known yet. */
  readonly unconfirmed: number
}

export type Health = 'ok' | 'warn' | 'fail' | 'off'

export interface Overview {
  readonly asOfUtc: string
  readonly letters: { readonly Pending: number; readonly Resolved: number; readonly Expired: number }
  readonly oldestPending: {
    readonly engine: string
    readonly rowKey: string
    readonly lastFailureAtUtc: string
  } | null
  readonly arrivals: { readonly lastHour: number; readonly usualPerHour: number | null }
  readonly returnedLastDay: number
  readonly unconfirmed: number
  readonly sources: readonly {
    readonly source: string
    readonly pending: number
    readonly health: Health
    readonly note: string | null
  }[]
}

export const RANGES = ['1h', '24h', '7d', '30d'] as const
export type Range = (typeof RANGES)[number]

export const SERIES = ['arrived', 'retried', 'confirmed', 'returned', 'discarded', 'expired'] as const
export type SeriesName = (typeof SERIES)[number]

export interface Activity {
  readonly range: Range
  readonly bucketSeconds: number
  readonly fromUtc: string
  readonly toUtc: string
  readonly series: Readonly<Record<SeriesName, readonly number[]>>
}

export interface Outcomes {
  readonly retried: number
  readonly confirmed: number
  readonly returned: number
  readonly unconfirmed: number
}

export interface SignatureGroup extends PlainGroup {
  /** Arrivals in each of the last 24 hours, the oldest first. */
  readonly trend: readonly number[]
  /** Only on the group's own page. */
  readonly outcomes?: Outcomes
}

/** Filters of letters under the names of the API. */
export type LetterFilter = Readonly<Partial<Record<LetterFilterKey, string>>>
export type LetterFilterKey =
  | 'engine'
  | 'status'
  | 'instanceId'
  | 'originalQueue'
  | 'signature'
  | 'correlationId'
  | 'source'
  | 'q'
  | 'fromDate'
  | 'toDate'
  | 'minAttempts'
  | 'outcome'

export interface Total {
  readonly total: number
  readonly exact: boolean
}

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
