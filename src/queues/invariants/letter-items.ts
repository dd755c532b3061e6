/**
 * Letters and the items of queues.
 *
 * I4: a letter has at most one item out, and only while it waits for that retry's outcome. An item of a letter that is pending again,
 * discarded or confirmed would be processed a second time.
 *
 * I5: a captured item is gone, known by its case or by its id; and every item has a serial that an id can be made of.
 *
 * I7: the item of an unedited retry carries the letter's payload, byte for byte.
 */
import { idFromSerial, KSUID_LENGTH } from '../../core/ksuid.ts'
import { engineSourceId, itemIdOf } from '../../core/source-id.ts'
import type {
  Audit,
  CountedSide,
  Finding,
  FoundRow,
  Invariant,
  LetterCheck,
  Side,
} from '../../letters/audit/invariant.ts'
import { batchesOf, read, textKey, together } from '../../letters/audit/walk.ts'
import { kindOf } from '../../letters/kinds.ts'
import { STATUS, STATUSES } from '../../letters/letter.ts'
import { countedItems, isSerial, itemRow, type Partitions, readPartitions } from './partitions.ts'

/** Items out on a retry, by letter. */
const ON_THEIR_WAY: CountedSide = {
  statement: read(
    'caseItems',
    'SELECT case_id AS key, part, id AS serial FROM bartleby.items WHERE case_id IS NOT NULL ORDER BY case_id',
  ),
  rows: ({ sizes: { cases } }) => cases,
}

/** Without partitions of deleted queues, whose items cannot be leased any more. */
const withPartitions =
  (check: (partitions: Partitions) => LetterCheck) =>
  async (audit: Audit): Promise<LetterCheck> =>
    check(await readPartitions(audit))

export const oneRetry: Invariant = {
  id: 'I4',
  promise: 'a letter has at most one item on its way, and waits for it',
  beside: { items: ON_THEIR_WAY },
  ofLetters: withPartitions((partitions) => ({
    *look({ id, letter, beside: { items = [] } }) {
      if (items.length > 1)
        yield {
          what: `${items.length} items carry the case of letter ${id}`,
          row: { letter: id, items: items.length },
        }
      if (items.length === 0 || letter === undefined || isWaiting(letter)) return
      const { engine, resolution } = letter
      const status = STATUSES[Number(letter.status)] ?? letter.status
      for (const { part, serial } of items)
        if (partitions.has(Number(part)))
          yield {
            what: `letter ${id} is ${status} and does not wait for the item of its retry, which lives`,
            row: { letter: id, engine, status, resolution, ...itemRow(partitions, part, serial) },
          }
    },
  })),
}

/** Whether a letter waits for its item; one that has only been captured is for I5 to judge. */
const isWaiting = ({ version, status, resolution, confirmed_at }: FoundRow): boolean =>
  Number(version) === 1 ||
  (Number(status) === STATUS.Resolved && resolution === 'retry' && confirmed_at === null)

export const noCopy: Invariant = {
  id: 'I5',
  promise: 'what became a letter is gone from where it was',
  /** Items whose letter was captured and has seen nothing else. */
  beside: { items: ON_THEIR_WAY },
  ofLetters: withPartitions((partitions) => ({
    *look({ id, letter, beside: { items = [] } }) {
      for (const { part, serial } of items)
        if (Number(letter?.version) === 1 && partitions.has(Number(part)))
          yield {
            what: `letter ${id} was captured from an item that still lives`,
            row: { letter: id, engine: letter?.engine, ...itemRow(partitions, part, serial) },
          }
    },
  })),
  rows: async (audit) => (await countedItems(audit)) + audit.sizes.letters,
  async *check(audit) {
    if ([...audit.drawers.values()].some(isOfItems)) yield* copiesById(audit)
  },
}

/** Digits of the serial at the end of an id; they sort as serials do. */
const DIGITS = 9
const LENGTHS = [KSUID_LENGTH, engineSourceId('').length + KSUID_LENGTH]

/** Letters whose source id may be that of an item, by its serial. No index has this order, so few columns are sorted. */
const CAPTURED: Side = {
  statement: read(
    'captured',
    `SELECT substr(source_id, length(source_id) - ${DIGITS - 1}) AS key, id
     FROM bartleby.letters WHERE length(source_id) IN (${LENGTHS.join(', ')}) ORDER BY 1`,
  ),
  keyOf: textKey,
}

const readLetter = read(
  'capturedLetter',
  'SELECT id, drawer, engine, source_id AS "sourceId" FROM bartleby.letters WHERE id = $1',
)

/** All items by serial, which is unique. */
const ITEMS: Side = {
  statement: read('items', 'SELECT id AS key, part FROM bartleby.items ORDER BY id'),
  keyOf: ({ key }) => (isSerial(key) ? idFromSerial('', Number(key)) : strayKey(Number(key))),
}

/** Serials without an id sort around the others: negative ones in front, too large ones behind. */
const strayKey = (serial: number): string =>
  serial < 0 ? `!${idFromSerial('', Math.max(0, Number.MAX_SAFE_INTEGER + serial))}` : '~'

async function* copiesById(audit: Audit): AsyncGenerator<Finding> {
  const partitions = await readPartitions(audit)
  for await (const { items, letters } of together(audit, { items: ITEMS, letters: CAPTURED })) {
    for (const { key, part } of items)
      if (!isSerial(key))
        yield {
          what: `an item has the serial ${key}, which no id is made of`,
          row: itemRow(partitions, part, key),
        }
    if (items.length === 0) continue
    for (const { id: number } of letters) {
      const [letter] = await audit.session.rows<FoundRow>(readLetter, number ?? null)
      const { id, drawer, engine, sourceId } = letter ?? {}
      const label = audit.drawers.get(Number(drawer))
      const item = items.find((each) => idOf(partitions, each) === itemIdOf(String(sourceId)))
      if (item === undefined || label === undefined || !isOfItems(label)) continue
      yield {
        what: `letter ${id} was captured from item '${sourceId}', which still lives`,
        row: { letter: id, engine, ...itemRow(partitions, item.part, item.key) },
      }
    }
  }
}

/** Sources that capture no items use source ids of their own. */
const isOfItems = ({ source }: { readonly source: string }): boolean => kindOf(source).capturesItems === true

/** undefined when the queue is gone or the serial makes no id. */
function idOf(partitions: Partitions, { part, key }: FoundRow): string | undefined {
  const partition = partitions.get(Number(part))
  return partition && isSerial(key) ? idFromSerial(partition.idPrefix, Number(key)) : undefined
}

const bytes = (table: string): string => `coalesce(length(${table}.payload), 0)`

/** Compared in the store, so that payloads do not travel. An empty payload is NULL or no bytes. */
const readBytes = read(
  'casePayloads',
  `SELECT item.part, item.id AS serial, letter.id AS letter, letter.engine, ${bytes('letter')} AS "letterBytes", ${bytes('item')} AS "itemBytes",
     CASE WHEN item.payload <> letter.payload OR ${bytes('item')} <> ${bytes('letter')} THEN 1 ELSE 0 END AS differs
   FROM bartleby.items AS item JOIN bartleby.letters AS letter ON letter.id = item.case_id
   WHERE item.case_id IS NOT NULL AND letter.edited = 0`,
)

export const sameBytes: Invariant = {
  id: 'I7',
  promise: 'an unedited retry carries the bytes of its letter',
  rows: ({ sizes: { cases } }) => cases,
  async *check(audit) {
    const partitions = await readPartitions(audit)
    for await (const rows of batchesOf(audit, readBytes)) {
      for (const { part, serial, letter, engine, letterBytes, itemBytes, differs } of rows)
        if (Number(differs) === 1)
          yield {
            what: `the item of letter ${letter} has another payload, and nobody edited it`,
            row: { letter, engine, letterBytes, itemBytes, ...itemRow(partitions, part, serial) },
          }
    }
  },
}
