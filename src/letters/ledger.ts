/** The office in numbers: what is on file, by what, and in which groups. Reads only. */
import { failure } from '../core/errors.ts'
import { decodePageToken, encodePageToken, type TokenFields } from '../core/page-token.ts'
import type { Database } from '../db/database.ts'
import type { AccountFilter } from './books.ts'
import { DrawerLabels } from './drawers.ts'
import { type LetterGauge, readLetterGauges } from './gauges.ts'
import type { EngineNames } from './report.ts'
import { type GroupCursor, listSignatures, readSignatureGroup, type SignatureGroup } from './signatures.ts'
import { type Tally, type TallyFilter, type TallyKey, tallyLetters } from './tally.ts'

export type SignatureFilter = Omit<AccountFilter, 'signature'>

export interface SignaturePage {
  readonly items: readonly SignatureGroup[]
  readonly continuationToken: string | null
}

const DEFAULT_LIMIT = 50

export class Ledger {
  readonly #db: Database
  readonly #engines: Pick<EngineNames, 'check'>
  readonly #labels = new DrawerLabels()

  constructor(db: Database, engines: Pick<EngineNames, 'check'>) {
    this.#db = db
    this.#engines = engines
  }

  /** Exact counts of the letters that match, by the keys given or by all. */
  async counts(filter: TallyFilter = {}, by?: readonly TallyKey[]): Promise<Tally> {
    if (filter.engine != null) this.#engines.check(filter.engine)
    return this.#db.session('letters.counts', (session) => tallyLetters(session, filter, by, this.#labels))
  }

  /** A page of the groups that hold letters, those with the most open ones first. */
  async signatures(
    filter: SignatureFilter = {},
    page: { readonly limit?: number; readonly continuationToken?: string | null } = {},
  ): Promise<SignaturePage> {
    if (filter.engine != null) this.#engines.check(filter.engine)
    const bound = tokenFilters(filter)
    const after = page.continuationToken == null ? null : cursorFrom(bound, page.continuationToken)
    const { items, next } = await this.#db.session('letters.signatures', (session) =>
      listSignatures(session, filter, after, page.limit ?? DEFAULT_LIMIT, this.#labels),
    )
    return { items, continuationToken: next === null ? null : encodePageToken(bound, cursorFields(next)) }
  }

  /** The group of one signature; a failure when no letter ever had it. */
  async signature(fingerprint: string): Promise<SignatureGroup> {
    const group = await this.#db.session('letters.signature', (session) =>
      readSignatureGroup(session, fingerprint, this.#labels),
    )
    if (group === null) throw failure('signature_unknown', { signature: fingerprint.slice(0, 64) })
    return group
  }

  /** What metrics tell. */
  gauges(): Promise<LetterGauge[]> {
    return this.#db.session('letters.gauges', (session) => readLetterGauges(session, this.#labels))
  }
}

/** What a token is bound to. */
function tokenFilters({ source, engine, originalQueue }: SignatureFilter): TokenFields {
  const fields = Object.entries({ source, engine, originalQueue })
  const given = fields.filter((field): field is [string, string] => field[1] != null)
  return { ...Object.fromEntries(given), list: 'signatures' }
}

const cursorFields = ({ open, total, signature }: GroupCursor): TokenFields => ({
  open: String(open),
  total: String(total),
  signature,
})

function cursorFrom(filters: TokenFields, token: string): GroupCursor {
  const { open = '', total = '', signature = '' } = decodePageToken(filters, token)
  if (![open, total].every((count) => /^-?\d{1,16}$/.test(count))) {
    throw failure('continuation_token_invalid', { reason: 'it is malformed' })
  }
  return { open: Number(open), total: Number(total), signature }
}
