/**
 * Producers, channels and consumers are one machine: rows with a public id, a name and a token, read anew for every use, so that a change
 * holds on all servers at once.
 *
 * A change needs the time of the last one, to the second and as text, and moves it by a second at least: of two changes that name the same
 * time exactly one is made.
 */
import { randomInt } from 'node:crypto'
import { type Instant, later } from '../../../core/clock.ts'
import { formatHttpDate } from '../../../core/timestamp.ts'
import type { Xids } from '../../../core/xid.ts'
import { type Session, sql, type Transaction, type Value } from '../../../store/database.ts'
import { Refused } from '../refusal.ts'
import type { Parts } from '../settings.ts'
import { CHANNEL, type Channel, type Holder, PRODUCER, type Producer } from '../webhook.ts'
import {
  type Page,
  type PageRequest,
  type PageRow,
  pageOf,
  pageStatements,
  readSpan,
  type Span,
  spanOf,
} from './pages.ts'
import { checkNames, checkTexts, given as givenText, isStorable } from './texts.ts'

interface KindParts<T extends Holder> {
  /** In the names of statements. */
  readonly name: 'Producer' | 'Channel' | 'Consumer'
  readonly table: string
  /** The last is its public id, one before it the number of its channel. */
  readonly unique: readonly string[]
  /** The column that a change finds its row by. */
  readonly key: readonly [column: string, of: (one: T) => Value]
  /** Columns that no other kind has. */
  readonly own?: readonly string[]
  readonly ownOf?: (one: T) => readonly Value[]
  readonly row: { read(row: object): T }
}

/** Nobody changes the same thing more often while we look. */
const MOST_LOOKS = 10

type Place = readonly [...scope: number[], publicId: string]

interface Putting {
  readonly tx: Transaction
  readonly now: Instant
  readonly xids: Xids
  readonly place: Place
  /** Asked once the condition is known to hold. */
  readonly draft: () => Draft
}

export interface HolderKind<T extends Holder> {
  readonly name: string
  read(session: Session, place: Place): Promise<T | null>
  put(putting: Putting, ifUnmodifiedSince: string | null): Promise<T>
  /** Without a condition. */
  putAnyway(putting: Putting): Promise<T>
  page(session: Session, span: Span, ...scope: readonly number[]): Promise<Page<T>>
}

/**
 * Messages, jobs and counts know channels and consumers by number, from one sequence. PostgreSQL has it as the default of the columns;
 * SQLite counts in a table of one row.
 */
const takeNumber = sql('webhooks.takeNumber', {
  postgres: '',
  sqlite: 'UPDATE webhook_numbers SET last = last + 1 WHERE rowid = 1',
})
const TAKEN_NUMBER = '(SELECT last FROM webhook_numbers WHERE rowid = 1)'

export function holderKind<T extends Holder>(kind: KindParts<T>): HolderKind<T> {
  const { name, table, unique, own = [], ownOf = () => [], key } = kind
  const isNumbered = key[0] === 'number'
  const given = ['id', ...unique, 'name', 'token', ...own, 'created_at', 'updated_at']
  const columns = [...(isNumbered ? ['number'] : []), ...given.slice(1)]
    .join(', ')
    .replace('pulls', 'pulls AS type')

  const isThere = unique.map((column, i) => `${column} = $${i + 1}`).join(' AND ')
  const read = sql(`webhooks.read${name}`, `SELECT id, ${columns} FROM bartleby.${table} WHERE ${isThere}`, {
    bigints: true,
  })
  // Both times are the last parameter.
  const values = given.map((_, i) => `$${Math.min(i + 1, given.length - 1)}`)
  const insert = (names: readonly string[], texts: readonly string[]) =>
    `INSERT INTO bartleby.${table} (${names.join(', ')}) VALUES (${texts.join(', ')})
     ON CONFLICT (${unique.join(', ')}) DO NOTHING RETURNING id, ${columns}`
  const plain = insert(given, values)
  /** Waits for a twin that is just being created, and then does nothing. */
  const insertOne = sql(
    `webhooks.create${name}`,
    {
      postgres: plain,
      sqlite: isNumbered ? insert([...given, 'number'], [...values, TAKEN_NUMBER]) : plain,
    },
    { bigints: true },
  )
  const set = ['name', 'token', ...own, 'updated_at'].map((column, i) => `${column} = $${i + 3}`)
  /** Only if it is still the one that was read. Waits for another change, and then does nothing. */
  const changeOne = sql(
    `webhooks.change${name}`,
    `UPDATE bartleby.${table} SET ${set.join(', ')}
     WHERE ${key[0]} = $1 AND updated_at = $2 RETURNING id, ${columns}`,
    { bigints: true },
  )
  const list = pageStatements(`webhooks.list${name}s`, {
    table,
    columns,
    index: `${table}_newest`,
    at: 'created_at',
    ...(unique.length > 1 && { of: unique[0] ?? '' }),
  })

  const one = ([row]: readonly object[]): T | null => (row === undefined ? null : kind.row.read(row))
  const find = async (session: Session, place: Place) =>
    isStorable(publicIdOf(place)) ? one(await session.rows<object>(read, ...place)) : null

  /** Null when it exists by now. */
  const create = async ({ tx, now, xids, place, draft: draftOf }: Putting) => {
    const draft = draftOf()
    const publicId = publicIdOf(place)
    checkTexts(publicId, draft.name, draft.token)
    checkNames(publicId, draft.name)
    if (isNumbered && tx.dialect === 'sqlite') await tx.run(takeNumber)
    const row = [xids.next(), ...place, draft.name, draft.token, ...draft.own, now]
    return one(await tx.rows<object>(insertOne, ...row))
  }

  /** Null when it changed meanwhile. */
  const change = async ({ tx, now, place, draft: draftOf }: Putting, current: T) => {
    const draft = draftOf()
    const token = draft.keepsToken ? current.token : draft.token
    checkTexts(draft.name, token)
    // Without a name it has its id, which may be of an earlier version.
    if (draft.name !== publicIdOf(place)) checkNames(draft.name)
    const isSame = ownOf(current).every((value, i) => value === draft.own[i])
    if (isSame && current.name === draft.name && current.token === token) return current
    const row = [draft.name, token, ...draft.own, nextUpdate(now, current)]
    return one(await tx.rows<object>(changeOne, key[1](current), current.updatedAt, ...row))
  }

  return {
    name,
    read: find,
    async put(putting, ifUnmodifiedSince) {
      const { tx, place } = putting
      const known = await find(tx, place)
      const created = known === null ? await create(putting) : null
      if (created !== null) return created
      const current = known ?? (await find(tx, place))
      // Created by another and deleted again, all since we first looked.
      if (current === null) throw new Refused('condition_failed')
      checkCondition(current, ifUnmodifiedSince)
      const changed = await change(putting, current)
      if (changed === null) throw new Refused('condition_failed')
      return changed
    },
    async putAnyway(putting) {
      for (let looks = 0; looks < MOST_LOOKS; looks++) {
        const current = await find(putting.tx, putting.place)
        const put = await (current === null ? create(putting) : change(putting, current))
        if (put !== null) return put
      }
      throw new Error('it is changed by others faster than it can be put')
    },
    page: async (session, span, ...scope) =>
      pageOf(await readSpan<PageRow>(session, list, span, ...scope), kind.row.read),
  }
}

// The last of a place is its public id.
const publicIdOf = (place: Place): string => place.at(-1) as string

export interface Draft {
  readonly name: string
  readonly token: string
  /** An existing one keeps its token. */
  readonly keepsToken: boolean
  /** Of the columns that only its kind has. */
  readonly own: readonly Value[]
}

/** The name defaults to the id, the token to a random one. */
export const draftOf = (
  publicId: string,
  { name, token }: { readonly name?: string | null; readonly token?: string | null },
  own: readonly Value[] = [],
): Draft => ({
  name: givenText(name) ?? publicId,
  token: givenText(token) ?? randomToken(),
  keepsToken: false,
  own,
})

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const CHARACTERS = 12

/** From a cryptographic source; `randomInt` has no bias. */
const randomToken = (): string =>
  Array.from({ length: CHARACTERS }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join('')

const SECOND_US = 1_000_000n

const nextUpdate = (now: Instant, { updatedAt }: Pick<Holder, 'updatedAt'>): Instant => {
  const earliest = later(updatedAt, SECOND_US)
  return now > earliest ? now : earliest
}

/** An empty condition is none. */
export function checkCondition(
  { updatedAt }: Pick<Holder, 'updatedAt'>,
  ifUnmodifiedSince: string | null,
): void {
  if (ifUnmodifiedSince === null || ifUnmodifiedSince === '') throw new Refused('condition_missing')
  if (ifUnmodifiedSince !== formatHttpDate(updatedAt)) throw new Refused('condition_failed')
}

export const PRODUCERS = holderKind<Producer>({
  name: 'Producer',
  table: 'webhook_producers',
  unique: ['producer_id'],
  // Not by primary key: PostgreSQL may walk the index of the list, where the id is the second column.
  key: ['producer_id', ({ producerId }) => producerId],
  row: PRODUCER,
})

export const CHANNELS = holderKind<Channel>({
  name: 'Channel',
  table: 'webhook_channels',
  unique: ['channel_id'],
  key: ['number', ({ number }) => number],
  row: CHANNEL,
})

/** One step into the unique index. */
const any = sql(
  'webhooks.anyChannel',
  "SELECT number FROM bartleby.webhook_channels WHERE channel_id >= '' ORDER BY channel_id LIMIT 1",
)

export const hasChannels = async (session: Session): Promise<boolean> => (await session.rows(any)).length > 0

type HolderParts = Pick<Parts, 'db' | 'clock' | 'xids'>

export class Holders<T extends Holder> {
  readonly #kind: HolderKind<T>
  readonly #parts: HolderParts

  constructor(kind: HolderKind<T>, parts: HolderParts) {
    this.#kind = kind
    this.#parts = parts
  }

  get(publicId: string, ...scope: readonly number[]): Promise<T | null> {
    const { name, read } = this.#kind
    return this.#parts.db.session(`webhooks.read${name}`, (session) => read(session, [...scope, publicId]))
  }

  /** Refuses to replace what the caller does not know. */
  put(
    publicId: string,
    request: { readonly name: string | null; readonly token: string | null },
    ifUnmodifiedSince: string | null,
    { scope = [], own = () => [] }: { scope?: readonly number[]; own?: () => readonly Value[] } = {},
  ): Promise<T> {
    const { db, clock, xids } = this.#parts
    const { name, put } = this.#kind
    const place = [...scope, publicId] as const
    const draft = () => draftOf(publicId, request, own())
    return db.transaction(`webhooks.put${name}`, (tx) =>
      put({ tx, now: clock.now(), xids, place, draft }, ifUnmodifiedSince),
    )
  }

  async list(page: PageRequest, ...scope: readonly number[]): Promise<Page<T>> {
    const { name, page: read } = this.#kind
    const span = spanOf(page)
    return this.#parts.db.session(`webhooks.list${name}s`, (session) => read(session, span, ...scope))
  }
}
