/** Numbers of letters, as they are asked for: counts, groups, activity, gauges. Reads only. */

import type { Clock } from '../../core/clock.ts'
import { failure } from '../../core/errors.ts'
import {
  boundTo,
  decodePageToken,
  encodePageToken,
  malformed,
  type PageRequest,
  type TokenFields,
} from '../../core/page-token.ts'
import type { Database } from '../../store/database.ts'
import type { LetterStatus } from '../letter.ts'
import type { LetterFilter } from '../lists/filter.ts'
import { totalOf } from '../lists/total.ts'
import type { EngineNames } from '../reports/report.ts'
import type { LetterTotal } from '../shapes.ts'
import { type Activity, readActivity } from './activity.ts'
import { DrawerLabels, type PlaceFilter } from './find-drawers.ts'
import { type LetterGauge, type OfficeGauges, readLetterGauges, readOfficeGauges } from './gauges.ts'
import { type Overview, readOverview } from './overview.ts'
import { type ActivityRange, COUNT_KEYS, type CountKey } from './shapes.ts'
import {
  type GroupCursor,
  listSignatures,
  readSignatureGroup,
  type SignatureDetail,
  type SignatureGroup,
} from './signatures.ts'
import {
  type CountFilter,
  countLetters,
  type LetterCounts,
  readPlaceCounts,
  type Summary,
  summaryOf,
} from './summary.ts'

interface SignaturePage {
  readonly items: readonly SignatureGroup[]
  readonly continuationToken: string | null
}

const DEFAULT_LIMIT = 50

export class LetterNumbers {
  readonly #db: Database
  readonly #clock: Clock
  readonly #engines: Pick<EngineNames, 'checkKnown'>
  /** Kept from one answer to the next. */
  readonly labels = new DrawerLabels()

  constructor(db: Database, clock: Clock, engines: Pick<EngineNames, 'checkKnown'>) {
    this.#db = db
    this.#clock = clock
    this.#engines = engines
  }

  overview(): Promise<Overview> {
    return this.#db.snapshot('letters.overview', (session) => readOverview(session, this.#clock.now()))
  }

  async activity(range: ActivityRange, filter: CountFilter = {}): Promise<Activity> {
    if (filter.engine != null) await this.#engines.checkKnown(filter.engine)
    return this.#db.session('letters.activity', (session) =>
      readActivity(session, range, filter, this.#clock.now()),
    )
  }

  /** Exact where counts know it. */
  async total(filter: LetterFilter = {}): Promise<LetterTotal> {
    if (filter.engine !== undefined) await this.#engines.checkKnown(filter.engine)
    return totalOf(this.#db, filter, this.labels)
  }

  /** By the given keys, or by all. */
  async counts(
    filter: CountFilter & { readonly status?: LetterStatus | null } = {},
    by: readonly CountKey[] = COUNT_KEYS,
  ): Promise<LetterCounts> {
    if (filter.engine != null) await this.#engines.checkKnown(filter.engine)
    return this.#db.snapshot('letters.counts', (session) => countLetters(session, filter, by, this.labels))
  }

  /** Letters without an engine or queue are left out. */
  async pendingBy(key: 'engine' | 'originalQueue'): Promise<ReadonlyMap<string, number>> {
    const { items } = await this.counts({ status: 'Pending' }, [key])
    return new Map(items.flatMap(({ [key]: name, count }) => (name == null ? [] : [[name, count]])))
  }

  /** Groups that hold letters, most open ones first. */
  async signatures(filter: PlaceFilter = {}, page: PageRequest = {}): Promise<SignaturePage> {
    if (filter.engine != null) await this.#engines.checkKnown(filter.engine)
    const { source, engine, originalQueue } = filter
    const bound = boundTo('signatures', { source, engine, originalQueue })
    const after = page.continuationToken == null ? null : cursorFrom(bound, page.continuationToken)
    const { items, next } = await this.#db.snapshot('letters.signatures', (session) =>
      listSignatures(
        session,
        filter,
        { after, limit: page.limit ?? DEFAULT_LIMIT },
        this.labels,
        this.#clock.now(),
      ),
    )
    return { items, continuationToken: next === null ? null : encodePageToken(bound, cursorFields(next)) }
  }

  /** Throws when no letter ever had it. */
  async signature(fingerprint: string): Promise<SignatureDetail> {
    const group = await this.#db.session('letters.signature', (session) =>
      readSignatureGroup(session, fingerprint, this.labels, this.#clock.now()),
    )
    if (group === null) throw failure('signature_unknown', { signature: fingerprint.slice(0, 64) })
    return group
  }

  summary(): Promise<Summary> {
    return this.#db.session('letters.standing', async (session) => summaryOf(await readPlaceCounts(session)))
  }

  officeGauges(): Promise<OfficeGauges> {
    return this.#db.session('letters.pulse', readOfficeGauges)
  }

  gauges(): Promise<LetterGauge[]> {
    return this.#db.session('letters.gauges', readLetterGauges)
  }
}

const cursorFields = ({ open, total, signature }: GroupCursor): TokenFields => ({
  open: String(open),
  total: String(total),
  signature,
})

function cursorFrom(filters: TokenFields, token: string): GroupCursor {
  const { open = '', total = '', signature = '' } = decodePageToken(filters, token)
  // PostgreSQL refuses to look for U+0000.
  if (![open, total].every((count) => /^-?\d{1,16}$/.test(count)) || signature.includes('\0'))
    throw malformed()
  return { open: Number(open), total: Number(total), signature }
}
