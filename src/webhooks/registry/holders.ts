/**
 * What producers and channels have in common: a public id, a name and a token; read anew for every use, put under a condition,
 * listed in pages.
 */
import type { Clock, Instant } from '../../core/clock.ts'
import type { Xids } from '../../core/xid.ts'
import type { Database, Session, Transaction } from '../../db/database.ts'
import {
  type Page,
  type PageRequest,
  type PageRow,
  type PageStatements,
  pageOf,
  readSpan,
  spanOf,
} from '../pages.ts'
import { type PutSteps, putConditionally } from './conditional.ts'
import { draftOf, type HolderDraft } from './draft.ts'

/** One kind of them, and its statements. */
export interface HolderKind<T extends { readonly updatedAt: Instant }, Row extends PageRow> {
  /** Names its uses of the store. */
  readonly name: string
  readonly listed: PageStatements
  read(session: Session, publicId: string): Promise<T | null>
  steps(tx: Transaction, now: Instant, xids: Xids, draft: HolderDraft): PutSteps<T>
  fromRow(row: Row): T
}

export class Holders<T extends { readonly updatedAt: Instant }, Row extends PageRow> {
  readonly #kind: HolderKind<T, Row>
  readonly #db: Database
  readonly #clock: Clock
  readonly #xids: Xids

  constructor(kind: HolderKind<T, Row>, db: Database, clock: Clock, xids: Xids) {
    this.#kind = kind
    this.#db = db
    this.#clock = clock
    this.#xids = xids
  }

  /** The one of exactly this id. */
  get(publicId: string): Promise<T | null> {
    return this.#db.session(`webhooks.read${this.#kind.name}`, (session) =>
      this.#kind.read(session, publicId),
    )
  }

  /** Creates or replaces it. Refuses to replace what the caller does not know. */
  put(
    publicId: string,
    { name, token }: { readonly name: string | null; readonly token: string | null },
    ifUnmodifiedSince: string | null,
  ): Promise<T> {
    const draft = draftOf(publicId, name, token)
    return this.#db.transaction(`webhooks.put${this.#kind.name}`, (tx) =>
      putConditionally(this.#kind.steps(tx, this.#clock.now(), this.#xids, draft), ifUnmodifiedSince),
    )
  }

  /** A page of all of them, newest first. */
  async list(page: PageRequest): Promise<Page<T>> {
    const span = spanOf(page)
    const rows = await this.#db.session(`webhooks.list${this.#kind.name}s`, (session) =>
      readSpan<Row>(session, this.#kind.listed, span),
    )
    return pageOf(rows, this.#kind.fromRow)
  }
}
