/** The SQL of the load. Both stores get the same letters; what they write differently stands side by side here. */
import { indexable } from '../../src/letters/lists/texts.ts'
import { type Mix, rareLetters, spanUs } from './shape.ts'

interface Words {
  readonly schema: string
  /** The numbers from one to another, both included, as a FROM item. */
  series(first: number, last: number): string
  least(a: string, b: string): string
  bytes(text: string): string
  padded(number: string, width: number): string
}

export const words: Readonly<Record<'postgres' | 'sqlite', Words>> = {
  postgres: {
    schema: 'bartleby.',
    series: (first, last) => `generate_series(${first}::bigint, ${last}::bigint) AS series (n)`,
    least: (a, b) => `least(${a}, ${b})`,
    bytes: (text) => `convert_to(${text}, 'UTF8')`,
    padded: (number, width) => `lpad((${number})::text, ${width}, '0')`,
  },
  sqlite: {
    schema: '',
    series: (first, last) =>
      `(WITH RECURSIVE series (n) AS (VALUES (${first}) UNION ALL SELECT n + 1 FROM series WHERE n < ${last}) SELECT n FROM series)`,
    least: (a, b) => `min(${a}, ${b})`,
    bytes: (text) => `CAST(${text} AS BLOB)`,
    padded: (number, width) => `printf('%0${width}d', ${number})`,
  },
}

export type Dialect = keyof typeof words

/** The kinds with the numbers that the store gave them, for the statements below to join with. */
export const createKinds = `CREATE TEMP TABLE kinds (
  kind int PRIMARY KEY, drawer int, engine text, dead_queue text, part int, lone int, error_class text, before text,
  after text, captured int, discarded int, expired int)`

/** Sixteen bits that look random: the upper half of the product with a large odd number. */
const scattered = (factor: number): string => `(n * ${factor} % 4294967296 / 65536)`

const someEnded = `CASE WHEN ${scattered(3266489917)} % 10 < 6 THEN 0 WHEN ${scattered(3266489917)} % 10 < 9 THEN 1 ELSE 2 END`

/** Some letters of a load. */
export interface Range {
  /** The numbers of the letters, both included, from 1. */
  readonly first: number
  readonly last: number
  /** Of all, not of the range. */
  readonly count: number
  /** When the newest of all was captured. */
  readonly nowUs: bigint
  readonly mix: Mix
}

/** The numbers of a range with what the letter is: its kind, its status (0, 1, 2) and its time. */
function letters(dialect: Dialect, { first, last, count, nowUs, mix }: Range): string {
  const { series, least } = words[dialect]
  const stepUs = spanUs / BigInt(count)
  const ordinaryKinds = mix.kinds.length - 1
  const status = mix.areAllPending === true ? '0' : someEnded
  const spread = (factor: number) => `${scattered(factor)} % ${ordinaryKinds}`
  return `(
    SELECT n, CASE WHEN n % ${Math.ceil(count / rareLetters)} = 0 THEN ${ordinaryKinds}
        ELSE ${least(spread(2654435761), spread(2246822519))} END AS letter_kind,
      ${status} AS status,
      ${nowUs} - (${count} - n) * ${stepUs} AS at
    FROM ${series(first, last)}) AS numbered JOIN kinds ON kinds.kind = letter_kind`
}

const filler =
  'a dead letter office for the messages that nobody could process, counted exactly and never lost, and sent back in the end'

/** The letters of a range. Those of plain queues have no instance, and lie in the dead queue while pending. */
export function insertLetters(dialect: Dialect, range: Range): string {
  const { schema, bytes, padded } = words[dialect]
  const lying = (value: string) => `CASE WHEN part IS NOT NULL AND status = 0 THEN ${value} END`
  return `INSERT INTO ${schema}letters (id, captured_at, first_failure_at, last_failure_at, item_created_at, resolved_at,
      expired_at, laid_at, serial, part, drawer, version, dequeue_count, partition, attempts, status, shelf, engine, source_id,
      instance_id, correlation_id, reason, error_class, error_message, resolution, resolved_by, notes, dead_queue, kind,
      payload, short_key)
    SELECT n, at, at - 60000000, at, at - 3600000000, CASE WHEN status = 1 THEN at + 1000 END, CASE WHEN status = 2 THEN at + 1000 END,
      ${lying('at')}, ${lying('n')}, ${lying('part')}, drawer, CASE WHEN status = 0 THEN 1 ELSE 2 END, 3,
      CASE WHEN part IS NOT NULL THEN 0 END, 0, status, ${lying('0')}, engine, ${sourceId(padded)},
      ${instanceId(range)}, CASE WHEN lone = 0 THEN 'run-' || n END,
      CASE WHEN lone = 1 THEN 'attempts' ELSE 'failed' END, error_class, before || n || after,
      CASE status WHEN 1 THEN 'discard' WHEN 2 THEN 'expire' END, CASE WHEN status > 0 THEN 'bench' END,
      CASE WHEN status = 1 THEN 'nobody needs it' END, dead_queue, ${bytes("'order'")}, ${bytes(payload)}, NULL
    FROM ${letters(dialect, range)}`
}

const instanceId = ({ mix }: Range): string =>
  `CASE WHEN lone = 0 THEN 'instance-' || (n % ${mix.instances}) END`

const payload = `'{"n":' || n || ',"text":"' || substr('${filler}', 1, 123 - length('' || n)) || '"}'`

/** As long as the ids of items. */
const sourceId = (padded: (number: string, width: number) => string): string => `'b' || ${padded('n', 26)}`

/** The captures of these letters and, for those that are not pending, how they ended. */
export function insertHistory(dialect: Dialect, range: Range): string[] {
  const { schema, padded } = words[dialect]
  const from = letters(dialect, range)
  const row = (
    createdAt: string,
    series: string,
    version: number,
    lone: string,
    actor: string,
    notes: string,
  ) =>
    `INSERT INTO ${schema}history (created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id,
       actor, notes, short_key)
     SELECT ${createdAt}, 0, n, ${series}, ${version}, CASE WHEN lone = 1 THEN ${lone} ELSE 'run-' || n END,
       ${instanceId(range)}, ${actor}, ${notes}, NULL
     FROM ${from}`
  return [
    row('at', 'captured', 1, 'NULL', 'NULL', 'NULL'),
    `${row(
      'at + 1000',
      'CASE WHEN status = 1 THEN discarded ELSE expired END',
      2,
      sourceId(padded),
      "'bench'",
      "CASE WHEN status = 1 THEN 'nobody needs it' END",
    )} WHERE status > 0`,
  ]
}

/** The characters of the loaded texts that are neither letters nor digits. */
const separators = ['\n', ' ', '-', '"', '{', '}', ':', ',']

/** What search finds these letters by: their texts in the form of the index. */
export function insertTexts(dialect: Dialect, first: number, last: number): string {
  const { schema } = words[dialect]
  const key = dialect === 'postgres' ? 'letter_id' : 'rowid'
  const text = dialect === 'postgres' ? `convert_from(payload, 'UTF8')` : 'CAST(payload AS TEXT)'
  const line = dialect === 'postgres' ? 'chr(10)' : 'char(10)'
  const ids = `source_id || coalesce(${line} || instance_id || ${line} || correlation_id, '')`
  const folded = `lower(${ids} || ${line} || error_class || ${line} || error_message || ${line} || ${text})`
  const indexed = separators.reduce((inner, separator) => {
    const character = separator === '\n' ? line : `'${separator}'`
    return `replace(${inner}, ${character}, '${indexable(separator)}')`
  }, folded)
  return `INSERT INTO ${schema}letter_texts (${key}, words)
    SELECT id, ${indexed} FROM ${schema}letters WHERE id BETWEEN ${first} AND ${last}`
}

const HOUR_US = 3_600_000_000
const MINUTE_US = 60_000_000
/** How far back minutes are kept, counted from the newest letter. */
const MINUTES_US = 26 * HOUR_US

const inPlaces = (schema: string): string =>
  `${schema}letters JOIN ${schema}drawers ON drawers.id = letters.drawer`

/** The activity that the captures would have left: by the hour for all subjects, by the minute for the office. */
function insertArrivals(schema: string): string[] {
  const from = (width: number) => `captured_at - captured_at % ${width}`
  const hours = (subject: string) =>
    `INSERT INTO ${schema}letter_hours (subject, act, at, letters)
     SELECT ${subject}, 0, ${from(HOUR_US)}, count(*) FROM ${inPlaces(schema)} GROUP BY 1, 3`
  return [
    ...['0', 'letters.drawer', '-drawers.place'].map(hours),
    `INSERT INTO ${schema}letter_minutes (act, at, letters)
     SELECT 0, ${from(MINUTE_US)}, count(*) FROM ${schema}letters
     WHERE captured_at >= (SELECT max(captured_at) - ${MINUTES_US} FROM ${schema}letters) GROUP BY 2`,
  ]
}

/** What is counted of letters: per drawer and status, per place and status, and their activity. */
export function insertLetterCounts(schema: string): string[] {
  const total = (table: string, key: string, name: string, status: string) =>
    `INSERT INTO ${schema}${table} (${name}, status, letters, last_seen_at)
     SELECT ${key}, ${status}, count(*), max(last_failure_at) FROM ${inPlaces(schema)} GROUP BY 1, 2`
  return [
    total('letter_totals', 'letters.drawer', 'drawer', 'letters.status'),
    total('place_totals', 'drawers.place', 'place', 'letters.status'),
    total('place_totals', 'drawers.place', 'place', '4'),
    ...insertArrivals(schema),
  ]
}

/** What is counted of the letters that were loaded: per drawer and status, and in the dead queue. */
export function insertTotals(dialect: Dialect): string[] {
  const { schema } = words[dialect]
  const lying = (value: string) =>
    `(SELECT ${value} FROM ${schema}letters WHERE letters.part = partition_totals.part)`
  return [
    ...insertLetterCounts(schema),
    `UPDATE ${schema}partition_totals SET ready = ready + ${lying('count(*)')}, dead = dead + ${lying('count(*)')},
       created_s = created_s + ${lying('sum(laid_at / 1000000)')}, created_us = created_us + ${lying('sum(laid_at % 1000000)')}
     WHERE part = (SELECT min(part) FROM kinds)`,
  ]
}
