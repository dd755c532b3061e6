/** Rows as objects: each column is named once, with its reader. SQL names are the fields in snake case. */
import { type Instant, instant } from '../core/clock.ts'
import type { Integer, Session, Statement, Value } from './database.ts'

type Readers = Readonly<Record<string, (value: never) => unknown>>

export type RowOf<Shape> =
  Shape extends RowShape<infer Of> ? { readonly [Field in keyof Of]: ReturnType<Of[Field]> } : never

export interface RowShape<Of extends Readers> {
  /** For SELECT and RETURNING. */
  readonly columns: string
  read(row: object): { readonly [Field in keyof Of]: ReturnType<Of[Field]> }
  all(session: Session, statement: Statement, ...values: readonly Value[]): Promise<RowOf<RowShape<Of>>[]>
  one(
    session: Session,
    statement: Statement,
    ...values: readonly Value[]
  ): Promise<RowOf<RowShape<Of>> | null>
}

export function rowShape<const Of extends Readers>(readers: Of): RowShape<Of> {
  const fields = Object.entries(readers).map(([field, read]) => {
    const column = field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    return { field, column, read }
  })
  const read: RowShape<Of>['read'] = (row) => {
    const made: Record<string, unknown> = {}
    // Rows have the selected columns, of the types that the readers say.
    const values = row as Readonly<Record<string, unknown>>
    for (const { field, column, read } of fields) made[field] = read(values[column] as never)
    return made as ReturnType<RowShape<Of>['read']>
  }
  const all: RowShape<Of>['all'] = async (session, statement, ...values) =>
    (await session.rows<object>(statement, ...values)).map(read)
  return {
    columns: fields.map(({ column }) => column).join(', '),
    read,
    all,
    one: async (...asked) => (await all(...asked))[0] ?? null,
  }
}

export const orNull =
  <From, To>(read: (value: From) => To) =>
  (value: From | null): To | null =>
    value === null ? null : read(value)

export const integer = (value: Integer): number => Number(value)
export const big = (value: Integer): bigint => BigInt(value)
export const text = (value: string): string => value
export const bytes = (value: Uint8Array | null): Uint8Array | null => value
export const number = (value: number): number => value
export const flag = (value: Integer): boolean => Number(value) === 1
export const at = (value: Integer): Instant => instant(BigInt(value))
/** Written by the same module. */
export const json = (value: string): unknown => JSON.parse(value)
/** Nobody else writes the column. */
export const oneOf =
  <To extends string>() =>
  (value: string): To =>
    value as To
