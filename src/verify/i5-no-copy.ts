/**
 * I5: what was captured is gone from where it was. No item lives that a letter was captured from, whether the item is
 * known by its case or by its id; and every item has a serial that an id can be made of.
 */
import { idFromSerial, KSUID_LENGTH } from '../core/ksuid.ts'
import { engineSourceId, itemIdOf } from '../core/source-id.ts'
import { isLive, isSerial, itemRow } from './audit.ts'
import type { Audit, Finding, FoundRow, Invariant } from './invariant.ts'
import { read, type Side, textKey, together } from './walk.ts'

export const noCopy: Invariant = {
  id: 'I5',
  promise: 'what became a letter is gone from where it was',
  /** Items whose letter was captured and has seen nothing else. */
  ofLetters: (audit) => ({
    *look({ id, letter, items }) {
      for (const { part, serial } of items)
        if (Number(letter?.version) === 1 && isLive(audit, part))
          yield {
            what: `letter ${id} was captured from an item that still lives`,
            row: { letter: id, engine: letter?.engine, ...itemRow(audit, part, serial) },
          }
    },
  }),
  rows: ({ items, letters }) => items + letters,
  async *check(audit) {
    if ([...audit.drawers.values()].some(isOfItems)) yield* copiesById(audit)
  },
}

/** Digits of a serial, which an id ends with and which sort as the serials do. */
const DIGITS = 9
const LENGTHS = [KSUID_LENGTH, engineSourceId('').length + KSUID_LENGTH]

/** Letters whose source id may be that of an item, by the serial of it: no index has them in this order, so little of them is sorted. */
const CAPTURED: Side = {
  statement: read(
    'captured',
    `SELECT substr(source_id, length(source_id) - ${DIGITS - 1}) AS key, id
     FROM bartleby.letters WHERE length(source_id) IN (${LENGTHS.join(', ')}) ORDER BY 1`,
  ),
  keyOf: textKey,
}

/** One letter, by primary key. */
const readLetter = read(
  'capturedLetter',
  'SELECT id, drawer, engine, source_id AS "sourceId" FROM bartleby.letters WHERE id = $1',
)

/** All items by their serials, which no two items have in common. */
const ITEMS: Side = {
  statement: read('items', 'SELECT id AS key, part FROM bartleby.items ORDER BY id'),
  keyOf: ({ key }) => (isSerial(key) ? idFromSerial('', Number(key)) : strayKey(Number(key))),
}

/** Serials that no id has sort beside those that have one, in their own order: below zero in front, too large ones behind. */
const strayKey = (serial: number): string =>
  serial < 0 ? `!${idFromSerial('', Math.max(0, Number.MAX_SAFE_INTEGER + serial))}` : '~'

async function* copiesById(audit: Audit): AsyncGenerator<Finding> {
  for await (const { items, letters } of together(audit, { items: ITEMS, letters: CAPTURED })) {
    for (const { key, part } of items)
      if (!isSerial(key))
        yield {
          what: `an item has the serial ${key}, which no id is made of`,
          row: itemRow(audit, part, key),
        }
    if (items.length === 0) continue
    for (const { id: number } of letters) {
      const [letter] = await audit.session.rows<FoundRow>(readLetter, number ?? null)
      const { id, drawer, engine, sourceId } = letter ?? {}
      const label = audit.drawers.get(Number(drawer))
      const item = items.find((each) => idOf(audit, each) === itemIdOf(String(sourceId)))
      if (item === undefined || label === undefined || !isOfItems(label)) continue
      yield {
        what: `letter ${id} was captured from item '${sourceId}', which still lives`,
        row: { letter: id, engine, ...itemRow(audit, item.part, item.key) },
      }
    }
  }
}

/** Only these sources capture items of ours; what others call a source id is theirs. */
const isOfItems = ({ source }: { readonly source: string }): boolean =>
  source === 'queues' || source === 'engines'

/** The id of an item; undefined when its queue is gone, or its serial is none. */
function idOf({ partitions }: Audit, { part, key }: FoundRow): string | undefined {
  const partition = partitions.get(Number(part))
  return partition && isSerial(key) ? idFromSerial(partition.idPrefix, Number(key)) : undefined
}
