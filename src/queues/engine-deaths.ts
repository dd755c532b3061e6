/** What items that die in an engine's queue say about themselves: the instance and the correlation that they name. */
import { type Integer, integerList, sql, type Transaction } from '../db/database.ts'
import { cleanInstanceId, correlationIdIn, PUBLISHER, readMessage } from '../engines/message.ts'

/** Beyond this nobody looks for names in a payload. */
const MAX_READ_BYTES = 65_536

/** Payloads by primary key, without those that are too long to be read. */
const readPayloads = sql('items.namingPayloads', {
  postgres: `SELECT id, payload FROM bartleby.items
             WHERE part = $1 AND shelf = $2 AND id = ANY($3::bigint[]) AND octet_length(payload) <= ${MAX_READ_BYTES}`,
  sqlite: `SELECT id, payload FROM items
           WHERE part = $1 AND shelf = $2 AND id IN (SELECT value FROM json_each($3)) AND length(payload) <= ${MAX_READ_BYTES}`,
})

/** null: it does not say. */
export interface MessageNames {
  readonly instanceId: string | null
  readonly correlationId: string | null
}

/** What the items with these serials name; those that name nothing may be left out. */
export async function readMessageNames(
  tx: Transaction,
  { part, shelf }: { readonly part: number; readonly shelf: number },
  serials: readonly number[],
): Promise<ReadonlyMap<number, MessageNames>> {
  if (serials.length === 0) return new Map()
  const list = integerList(tx.dialect, serials)
  const rows = await tx.rows<{ id: Integer; payload: Uint8Array }>(readPayloads, part, shelf, list)
  return new Map(rows.map(({ id, payload }) => [Number(id), namesIn(payload)]))
}

function namesIn(payload: Uint8Array): MessageNames {
  const read = readMessage(payload)
  const message = read.ok ? read.message : null
  return { instanceId: instanceIdIn(message), correlationId: correlationIdIn(message) }
}

function instanceIdIn(message: unknown): string | null {
  if (typeof message !== 'object' || message === null || !('instanceId' in message)) return null
  const { instanceId } = message
  if (typeof instanceId !== 'string') return null
  const clean = cleanInstanceId(instanceId)
  return clean === PUBLISHER && instanceId !== PUBLISHER ? null : clean
}
