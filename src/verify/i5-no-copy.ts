/**
 * I5: what was captured is gone from where it was. No item lives that a letter was captured from, whether the item is
 * known by its case or by its id.
 */
import { idFromSerial } from '../core/ksuid.ts'
import type { Integer } from '../db/database.ts'
import { engineSourceId, itemIdOf } from '../letters/item-source-id.ts'
import { isLive, itemRow } from './audit.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { CASES, fault, faultsAlong, type ItemGroup, itemGroups, itemSteps, read } from './walk.ts'

/** Items of a range of cases whose letter was captured and has seen nothing else. */
const uncollected = fault(
  'uncollected',
  `SELECT item.part, item.id AS serial, letter.id AS letter, letter.engine
   FROM bartleby.items AS item JOIN bartleby.letters AS letter ON letter.id = item.case_id
   WHERE item.case_id > $1 AND item.case_id <= $2 AND letter.id > $1 AND letter.id <= $2 AND letter.version = 1`,
  ({ part, serial, ...row }, audit) =>
    isLive(audit, part)
      ? {
          what: `letter ${row.letter} was captured from an item that still lives`,
          row: { ...row, ...itemRow(audit, part, serial) },
        }
      : [],
)

/** The items of a step, one by one. */
const readItems = itemGroups('items', '', 'id AS last, 1 AS found', ', id')

/** Letters of one engine by their source ids: one look into letters_by_source for each. */
const readCaptured = read('captured', {
  postgres: `SELECT id, drawer, source_id FROM bartleby.letters WHERE engine = $1 AND source_id = ANY($2::text[])`,
  sqlite:
    'SELECT id, drawer, source_id FROM letters WHERE engine = $1 AND source_id IN (SELECT value FROM json_each($2))',
})

export const noCopy: Invariant = {
  id: 'I5',
  promise: 'what became a letter is gone from where it was',
  rows: ({ cases, items }) => cases + items,
  async *check(audit) {
    yield* faultsAlong(audit, CASES, [uncollected])
    yield* copiesById(audit)
  },
}

async function* copiesById(audit: Audit): AsyncGenerator<Finding> {
  const engines = enginesWithItems(audit)
  if (engines.length === 0) return
  for await (const items of itemSteps<ItemGroup>(audit, readItems)) {
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
  const { session } = audit
  const list = ids
  const rows = await session.rows<{ id: Integer; drawer: Integer; source_id: string }>(
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
      row: { letter: id, engine, ...itemRow(audit, place.part, place.last) },
    }
  }
}
