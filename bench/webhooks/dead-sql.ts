/** The SQL of the load. Both stores get the same; what is said of a job follows from the number of its message. */
import { type Dialect, insertLetterCounts, words } from '../letters/sql.ts'

/** How callbacks failed: the number of the job stands between the two halves. */
export const deadErrors = [
  { errorClass: 'HttpError', before: 'the callback answered 503 to request ', after: '' },
  { errorClass: 'HttpError', before: 'the callback knows nothing of request ', after: '' },
  { errorClass: 'TimeoutError', before: 'request ', after: ' had no answer after 30 s' },
  { errorClass: 'NetworkError', before: 'request ', after: ' found nobody listening' },
] as const

/** What stands for a channel, a consumer of it and an error, with the numbers that the store gave them. */
export const createPlaces = `CREATE TEMP TABLE addressees (
  channel int, position int, error int, channel_number int, channel_id text, consumer int, drawer int, error_class text,
  before text, after text, PRIMARY KEY (channel, position, error))`

export interface Range {
  readonly channels: number
  readonly consumers: number
  readonly failures: number
  /** Of the messages, both included, from 0. */
  readonly first: number
  readonly last: number
  /** Of all, not of the range. */
  readonly messages: number
  readonly nowUs: bigint
  /** Of captures. */
  readonly series: number
}

/** They lie this far back, evenly. */
export const SPAN_US = 30n * 86_400_000_000n
/** The longest block of counters that no message's jobs straddle. */
const counters = (consumers: number): number => Math.floor(2 ** 24 / consumers) * consumers

/** Messages with their number `m` and the time of their deaths. */
const numbered = (dialect: Dialect, { first, last, messages, nowUs, channels }: Range): string =>
  `(SELECT n AS m, n % ${channels} AS channel, ${nowUs} - (${messages} - 1 - n) * ${SPAN_US / BigInt(messages)} AS at
    FROM ${words[dialect].series(first, last)}) AS numbered`

/** Jobs: the number of their letter `l`, and `at + position` for times that differ within a message. */
const jobs = (dialect: Dialect, range: Range): string =>
  `(SELECT m, m * ${range.consumers} + position + 1 AS l, at + position AS at, position, channel_number, channel_id, consumer,
      drawer, error_class, before, after
    FROM ${numbered(dialect, range)}
    JOIN addressees ON addressees.channel = numbered.channel AND addressees.error = m / ${range.channels} % ${deadErrors.length}) AS jobs`

const createdAt = '(at - 3600000000)'

/** An xid: seconds, a maker that is its own for messages and for jobs, and a counter. Five bits to a character, from the left. */
function xid(seconds: string, maker: '0000001' | '0000002', counter: string): string {
  const character = (value: string) =>
    `substr('0123456789abcdefghijklmnopqrstuv', CAST((${value}) & 31 AS int) + 1, 1)`
  const ofSeconds = [27, 22, 17, 12, 7, 2].map((shift) => character(`(${seconds}) >> ${shift}`))
  const ofCounter = [21, 16, 11, 6, 1].map((shift) => character(`(${counter}) >> ${shift}`))
  return [
    ...ofSeconds,
    character(`(${seconds}) << 3 & 24`),
    `'${maker}'`,
    ...ofCounter,
    character(`(${counter}) << 4 & 16`),
  ].join(' || ')
}

/** Of all jobs of a message: their ids follow each other. */
const secondsOf = (position: string): string => `(at - ${position} - 3600000000) / 1000000`

const jobId = ({ consumers }: Range, position: string): string =>
  xid(secondsOf(position), '0000002', `m * ${consumers} % ${counters(consumers)} + ${position}`)

const messageKey = (position: string): string => xid(secondsOf(position), '0000001', 'm % 16777216')

const messageId = `'message-' || m`

const filler =
  'a dead letter office for the messages that nobody could process, counted exactly and never lost, and sent back in the end'

const payload = `'{"n":' || m || ',"text":"' || substr('${filler}', 1, 123 - length('' || m)) || '"}'`

export function insertMessages(dialect: Dialect, range: Range): string {
  const { schema, bytes } = words[dialect]
  return `INSERT INTO ${schema}webhook_messages (id, channel, message_id, producer, created_at, received_at, priority, first_job,
      jobs, content_type, headers, payload)
    SELECT ${messageKey('0')}, (SELECT min(channel_number) FROM addressees WHERE addressees.channel = numbered.channel), ${messageId},
      (SELECT min(id) FROM ${schema}webhook_producers), ${createdAt}, ${createdAt}, 0, ${jobId(range, '0')}, ${range.consumers},
      'application/json', '[]', ${bytes(payload)}
    FROM ${numbered(dialect, range)}`
}

/** All of them dead and exhausted. */
export function insertJobs(dialect: Dialect, range: Range): string {
  const { schema } = words[dialect]
  return `INSERT INTO ${schema}webhook_jobs (created_at, changed_at, priority, letter, consumer, attempts, state, exhausted, id, message)
    SELECT at - position - 3600000000, at, 0, l, consumer, 5, 4, 1, ${jobId(range, 'position')}, ${messageKey('position')}
    FROM ${jobs(dialect, range)}`
}

/** Their letters, and the history of the captures. */
export function insertDeadLetters(dialect: Dialect, range: Range): string[] {
  const { schema, bytes } = words[dialect]
  const from = jobs(dialect, range)
  return [
    `INSERT INTO ${schema}letters (id, captured_at, first_failure_at, last_failure_at, item_created_at, drawer, version,
       dequeue_count, attempts, status, engine, source_id, correlation_id, reason, error_class, error_message, failed_by,
       encoding, kind, reference, headers, payload, short_key)
     SELECT l, at, at - 3600000000, at, at - position - 3600000000, drawer, 1, 6, 0, 0, 'webhooks', ${jobId(range, 'position')}, ${messageId},
       'attempts', error_class, before || l || after, 'bench', ${bytes("'application/json'")}, ${bytes('channel_id')},
       ${bytes(messageId)}, ${bytes("'[]'")}, ${bytes(payload)}, NULL
     FROM ${from}`,
    `INSERT INTO ${schema}history (created_at, duration_ms, letter_id, series, letter_version, correlation_id, short_key)
     SELECT at, 0, l, ${range.series}, 1, ${messageId}, NULL FROM ${from}`,
  ]
}

/** The failures before the last one. */
export function insertFailures(dialect: Dialect, range: Range): string {
  const { schema } = words[dialect]
  const series =
    dialect === 'postgres' ? `generate_series(1, ${range.failures}) AS tries (number)` : triesOf(range)
  return `INSERT INTO ${schema}letter_attempts (letter_id, number, failed_at, failed_by, error_class, error_message)
    SELECT l, number, at - 3600000000 + CAST(number AS bigint) * 600000000, 'bench', error_class, before || l || after
    FROM ${jobs(dialect, range)} CROSS JOIN ${series}`
}

const triesOf = ({ failures }: Range): string =>
  `(SELECT value AS number FROM json_each('${JSON.stringify(Array.from({ length: failures }, (_, at) => at + 1))}')) AS tries`

/** What is counted: letters by drawer, messages by channel. */
export function insertTotals(dialect: Dialect): string[] {
  const { schema } = words[dialect]
  return [
    ...insertLetterCounts(schema),
    `INSERT INTO ${schema}webhook_totals (subject, tally, amount)
     SELECT channel, 11, count(*) FROM ${schema}webhook_messages GROUP BY channel`,
  ]
}
