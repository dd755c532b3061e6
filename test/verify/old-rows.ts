/** What rows of stores of earlier schema versions are made of: their times, their names, and the statements that insert them. */
import { instant } from '../../src/core/clock.ts'
import { idFromSerial } from '../../src/core/ksuid.ts'
import type { Xid } from '../../src/core/xid.ts'

export const FIRST_SECOND = 1_800_000_000
/** So many seconds after the beginning of a minute, which is that of an hour too: all that happened is within it. */
export const at = (seconds: number): number => (FIRST_SECOND + seconds) * 1_000_000
export const MINUTE = at(0)
/** After all that happened, and before all that is due. */
export const NOW = instant(BigInt(at(50)))
export const LATER = at(1_000_000)

type Cell = string | number | boolean | Uint8Array | null
export type Row = Readonly<Record<string, Cell | undefined>>

/** A column that a version has; undefined: it does not. */
export type Since = <T extends Cell>(version: number, value: T) => T | undefined

export const PREFIX = '2YoLdErStOrEaBcDeF'
export const itemId = (serial: number): string => idFromSerial(PREFIX, serial)
export const PAYLOAD = Buffer.from('{"n":1}')

export interface Made {
  readonly jobs: readonly Xid[]
  readonly redrives: readonly Xid[]
  readonly runs: readonly Xid[]
}

export const SENDS = {
  events: ['5f0e7c52-0c53-4d8e-9d3e-0d1f6a1c0001', '5f0e7c52-0c53-4d8e-9d3e-0d1f6a1c0002'],
} as const
export const PUBLISHED = '5f0e7c52-0c53-4d8e-9d3e-0d1f6a1c0003'

export type Add = (table: string, ...rows: readonly Row[]) => void

export function insertion(isPostgres: boolean, table: string, row: Row): string {
  const cells = Object.entries(row).flatMap(([column, cell]) =>
    cell === undefined ? [] : [[column, literal(isPostgres, cell)] as const],
  )
  const columns = cells.map(([column]) => column).join(', ')
  return `INSERT INTO ${isPostgres ? 'bartleby.' : ''}${table} (${columns}) VALUES (${cells.map(([, text]) => text).join(', ')})`
}

function literal(isPostgres: boolean, cell: Cell): string {
  if (cell === null || typeof cell === 'number' || typeof cell === 'boolean')
    return String(cell).toUpperCase()
  if (typeof cell === 'string') return `'${cell.replaceAll("'", "''")}'`
  const hex = Buffer.from(cell).toString('hex')
  return isPostgres ? `'\\x${hex}'` : `x'${hex}'`
}
