/** What the fragments of README and docs leave to the program that they stand in. */
import type { Office as OpenOffice } from 'bartleby'
import type { LetterDetail } from 'bartleby/client'
import type * as Outboxes from 'bartleby/outbox'
import type pg from 'pg'

declare global {
  const office: OpenOffice
  function ship(order: unknown, options?: { readonly signal: AbortSignal }): Promise<void>
  const letter: LetterDetail

  const createKey: typeof Outboxes.createKey
  const httpTransport: typeof Outboxes.httpTransport
  const outbox: Outboxes.Outbox<pg.PoolClient>
  const pool: pg.Pool
  const client: pg.PoolClient
  const tx: pg.PoolClient
  const id: string
  const total: number
  const payload: Uint8Array
  const order: object
  const token: string
  const webhookSecret: string
  const request: { readonly id: string; readonly headers: Readonly<Record<string, string>> }
  function chargeFor(tx: pg.PoolClient, order: object): Promise<void>
  interface MyTransaction {
    query(sql: string, parameters: readonly unknown[]): Promise<{ rows: Record<string, unknown>[] }>
  }
}
