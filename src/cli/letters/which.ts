/** Which letters: by flags in the API's words and a query in the console's; page by page, counted, or one by name. */
import type { Command } from 'commander'
import { queryText } from '../../client/envelope.ts'
import { OfficeClientError } from '../../client/errors.ts'
import type { LetterDetail, LetterItem, LetterKey, LetterTotal } from '../../client/letter-types.ts'
import {
  LETTER_QUERY_KEYS,
  type LetterParameter,
  type LetterParameters,
  parseLetterQuery,
} from '../../core/letter-query.ts'
import { SOURCE_NAMES } from '../../sources/commands.ts'
import { CommandFailure, EXIT, usage } from '../../terminal/exit.ts'
import { type Desk, listAll, type OfficeFlags, walkList } from '../../terminal/office.ts'
import { printable } from '../../terminal/terminal.ts'
import { listed, nowMs } from '../../terminal/words.ts'

export interface FilterFlags extends OfficeFlags, LetterParameters {
  readonly query?: string
}

/** Flags are the parameters with hyphens. */
const FLAGS: readonly (readonly [parameter: LetterParameter, value: string, means: string])[] = [
  ['engine', 'engine', 'of this engine'],
  ['status', 'status', 'Pending, Resolved or Expired'],
  ['instanceId', 'id', 'of this instance, item or key'],
  ['fromDate', 'time', 'last failure at or after this time'],
  ['toDate', 'time', 'last failure before this time'],
  ['source', 'source', listed(SOURCE_NAMES, 'or')],
  ['originalQueue', 'queue', 'from this queue'],
  ['signature', 'signature', 'with this error'],
  ['correlationId', 'id', 'with this correlation id'],
  ['q', 'text', 'with this text in error, ids, headers or payload'],
  ['minAttempts', 'number', 'failed at least so often'],
  ['outcome', 'outcome', 'confirmed or unconfirmed: what is known of its retry'],
]

const flagOf = (parameter: string): string =>
  `--${parameter.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

export function filterFlags(command: Command): void {
  command.option('--query <query>', "in the console's words, for example 'status:pending age:>2d'")
  for (const [parameter, value, means] of FLAGS) {
    command.option(`${flagOf(parameter)} <${value}>`, means)
  }
}

export const QUERY_HELP = `Queries are terms key:value, and text to search for. All must hold; values with spaces stand in double quotes:
${LETTER_QUERY_KEYS.map(({ example, means }) => `  ${example.padEnd(26)} ${means}`).join('\n')}`

/** Flags, `--query` and words together. Refuses what says the same twice. */
export function filterOf(flags: FilterFlags, words: readonly string[] = []): LetterParameters {
  const text = [...(flags.query === undefined ? [] : [flags.query]), ...asTerms(words)].join(' ')
  const { filter, problems } = parseLetterQuery(text, nowMs())
  if (problems.length > 0) {
    const said = problems.map(({ given, message }) => `${given}: ${message}`)
    throw usage(`the query cannot be asked: ${said.join('; ')}`)
  }
  const found = new Map(Object.entries(filter))
  for (const [parameter] of FLAGS) {
    const given = flags[parameter]
    if (given === undefined) continue
    if (found.has(parameter)) throw usage(`${flagOf(parameter)} and the query say the same; leave one out`)
    found.set(parameter, parameter === 'status' ? capitalised(given) : given)
  }
  return Object.fromEntries(found)
}

/**
 * The shell turns `error:"timed out"` into `error:timed out`. Of several words each is a term and gets its quotes back;
 * a word with several terms was quoted as a whole.
 */
function asTerms(words: readonly string[]): readonly string[] {
  if (words.length < 2) return words
  return words.map((word) => {
    const [, key = '', value = word] = /^([A-Za-z]+:)?(.*)$/s.exec(word) ?? []
    const isOne = /\s/.test(value) && !value.includes('"') && !/\s[A-Za-z]+:/.test(value)
    return isOne ? `${key}"${value}"` : word
  })
}

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase()

/** The newest failure first. */
export const walkLetters = (desk: Desk, filter: LetterParameters, most?: number) =>
  walkList<LetterItem>(desk, '/api/dlq', filter, most)

export const totalOf = ({ call }: Desk, filter: LetterParameters): Promise<LetterTotal> =>
  call('GET', `/api/dlq/total${queryText(filter)}`)

/** Row keys end with the time of the first failure; anything else names an instance. */
const ROW_KEY = /-\d{8}T\d{12}(?:\d{12,18})?Z$/

export const isRowKey = (text: string): boolean => ROW_KEY.test(text)

/** By row key, or the only one of an instance, because lists show instances. */
export async function letterNamed(desk: Desk, key: LetterKey): Promise<LetterDetail> {
  const { letters } = desk
  try {
    return await letters.get(key)
  } catch (error) {
    const isUnknown = error instanceof OfficeClientError && error.code === 'letter_unknown'
    if (!isUnknown || isRowKey(key.rowKey)) throw error
    const filter = { engine: key.engine, instanceId: key.rowKey }
    const found = await listAll<LetterItem>(desk, '/api/dlq', filter, MOST_NAMED)
    const [only] = found
    if (only === undefined) throw error
    if (found.length === 1) return letters.get(only)
    throw new CommandFailure(EXIT.usage, ambiguous(key, found), { cause: error })
  }
}

const MOST_NAMED = 10

function ambiguous({ engine, rowKey }: LetterKey, found: readonly LetterItem[]): string {
  const lines = found.map((each) => `  ${each.rowKey}  ${each.status}  ${each.errorMessage.slice(0, 60)}`)
  const many = found.length === MOST_NAMED ? `${MOST_NAMED} or more` : found.length
  const names = lines.map(printable).join('\n')
  return `${many} letters of engine '${printable(engine)}' have '${printable(rowKey)}'; name one by its row key:\n${names}`
}
