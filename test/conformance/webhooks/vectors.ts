/** The vectors of the webhook contract, as they stand in vectors.json. */
import { readFileSync } from 'node:fs'
import type { Answer } from '../../world/receiver.ts'

type Texts = Readonly<Record<string, string>>

export interface Step {
  readonly id: string
  readonly request?: {
    readonly method: string
    readonly path: string
    readonly headers?: Texts
    readonly form?: Texts
    readonly body?: string
  }
  readonly expect?: {
    readonly status: number
    readonly headers?: Texts
    readonly json?: unknown
    readonly text?: string
  }
  readonly save?: Texts
  /** Callbacks that come, and how many there are then. */
  readonly await?: {
    readonly messageId?: string
    readonly body?: string
    readonly method?: string
    readonly path: string
    readonly neverPath?: string
    readonly headers?: Texts
    readonly count: number
    readonly withinSeconds: number
    readonly minGapsSeconds?: readonly number[]
  }
  /** What the consumer answers from now on. */
  readonly consumer?: Answer & { readonly path: string }
  readonly sleepMs?: number
}

export interface Vectors {
  readonly steps: readonly Step[]
  readonly hmac: {
    readonly secretBase64: string
    readonly toleranceSeconds: number
    readonly cases: readonly {
      readonly now: number
      readonly path: string
      readonly header: string | null
      readonly body: string
      readonly expect: 'pass' | number
      readonly text?: string
    }[]
  }
  readonly backoff: readonly { readonly list: readonly number[]; readonly delays: readonly number[] }[]
  readonly xid: readonly {
    readonly text: string
    readonly hex?: string
    readonly unixSeconds?: number
    readonly invalid?: boolean
  }[]
  readonly cursor: readonly { readonly id: string; readonly createdAt: string; readonly base64: string }[]
  readonly scheduledFor: { readonly valid: readonly string[]; readonly invalid: readonly string[] }
  readonly priority: Readonly<Record<string, number>>
}

export const VECTORS: Vectors = JSON.parse(readFileSync(new URL('vectors.json', import.meta.url), 'utf8'))
