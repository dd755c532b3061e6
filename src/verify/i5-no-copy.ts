/**
 * I5: what was captured is gone from where it was. No item lives that a letter was captured from, whether the item is
 * known by its case or by its id.
 */
import { idFromSerial } from '../core/ksuid.ts'
import { type Integer, sql } from '../db/database.ts'
import { engineSourceId, itemIdOf } from '../letters/item-source-id.ts'
import { itemRow } from './audit.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { caseRanges, type ItemGroup, itemGroups, itemStep } from './walk.ts'

/** Items of a range of cases whose letter was captured and has seen nothing else. */
const readUncollected = sql(
  'verify.uncollected',
  `SELECT item.part, item.id AS serial, letter.id AS letter_id, letter.engine
   FROM bartleby.items AS item JOIN bartleby.letters AS letter ON letter.id = item.case_id
   WHERE item.case_id > $1 AND item.case_id <= $2 AND letter.id > $1 AND letter.id <= $2 AND letter.version = 1`,
  { bigints: true },
)

const itemsOfStep = itemStep('')

/** The items of a step, one by one. */
const readItems = sql('verify.items', {
  postgres: `SELECT part, shelf, id AS last, 1 AS found FROM (${itemsOfStep.postgres}) AS step`,
  sqlite: `SELECT part, shelf, id AS last, 1 AS found FROM (${itemsOfStep.sqlite})`,
})

/** Letters of one engine by their source ids: one look into letters_by_source for each. */
const readCaptured = sql(
  'verify.captured',
  {
    postgres: `SELECT id, drawer, source_id FROM bartleby.letters WHERE engine = $1 AND source_id = ANY($2::text[])`,
    sqlite:
      'SELECT id, drawer, source_id FROM letters WHERE engine = $1 AND source_id IN (SELECT value FROM json_each($2))',
  },
  { bigints: true },
)

export const noCopy: Invariant = {
  id: 'I5',
  promise: 'what became a letter is gone from where it was',
  rows: ({ cases, items }) => cases + items,
  async *check(audit) {
    yield* copiesByCase(audit)
    yield* copiesById(audit)
  },
}

async function* copiesByCase(audit: Audit): AsyncGenerator<Finding> {
  for await (const { after, through } of caseRanges(audit)) {
    const rows = await audit.session.rows<{
      part: Integer
      serial: Integer
      letter_id: Integer
      engine: string
    }>(readUncollected, after, through)
    for (const { part, serial, letter_id, engine } of rows) {
      if (!audit.partitions.has(Number(part))) continue
      yield {
        what: `letter ${letter_id} was captured from an item that still lives`,
        row: { letter: String(letter_id), engine, ...itemRow(audit, Number(part), Number(serial)) },
      }
    }
  }
}

async function* copiesById(audit: Audit): AsyncGenerator<Finding> {
  const engines = enginesWithItems(audit)
  if (engines.length === 0) return
  for await (const items of itemGroups<ItemGroup>(audit, readItems)) {
    const places = new Map<string, ItemGroup>()
    for (const item of items) {
      const partition = audit.partitions.get(Number(item.part))
      if (partition !== undefined) places.set(idFromSerial(partition.idPrefix, Number(item.last)), item)
    }
    for (const engine of engines) yield* lettersOf(audit, engine, places)
  }
}

/** Only these sources capture items of ours; what others call a source id is theirs. */
const enginesWithItems = ({ drawers }: Audit): string[] => [
  ...new Set([...drawers.values()].filter(isOfItems).map(({ engine }) => engine)),
]

const isOfItems = ({ source }: { readonly source: string }): boolean =>
  source === 'queues' || source === 'engines'

async function* lettersOf(
  audit: Audit,
  engine: string,
  places: ReadonlyMap<string, ItemGroup>,
): AsyncGenerator<Finding> {
  const ids = [...places.keys()].flatMap((id) => [id, engineSourceId(id)])
  // Ids are base62, and a prefix: nothing in them has to be quoted.
  const list = audit.session.dialect === 'postgres' ? `{${ids.join(',')}}` : JSON.stringify(ids)
  const rows = await audit.session.rows<{ id: Integer; drawer: Integer; source_id: string }>(
    readCaptured,
    engine,
    list,
  )
  for (const { id, drawer, source_id } of rows) {
    const place = places.get(itemIdOf(source_id))
    const label = audit.drawers.get(Number(drawer))
    if (place === undefined || label === undefined || !isOfItems(label)) continue
    yield {
      what: `letter ${id} was captured from item '${source_id}', which still lives`,
      row: { letter: String(id), engine, ...itemRow(audit, Number(place.part), Number(place.last)) },
    }
  }
}
