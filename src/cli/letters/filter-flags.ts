/** Which letters: flags in the words of the API, and a query in those of the console. */
import { type Command, Option } from 'commander'
import {
  LETTER_QUERY_KEYS,
  type LetterParameter,
  type LetterParameters,
  parseLetterQuery,
} from '../../core/letter-query.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import type { ConnectionFlags } from '../queues/connection.ts'
import { nowMs } from '../times.ts'

export interface FilterFlags extends ConnectionFlags, LetterParameters {
  readonly query?: string
}

/** Parameters of the API with what they mean; their flags are the same words with hyphens. */
const FLAGS: readonly (readonly [parameter: LetterParameter, value: string, means: string])[] = [
  ['engine', 'engine', 'of this engine'],
  ['status', 'status', 'Pending, Resolved or Expired'],
  ['instanceId', 'id', 'of this instance, item or key'],
  ['fromDate', 'time', 'last failure at or after this time'],
  ['toDate', 'time', 'last failure before this time'],
  ['source', 'source', 'queues, engines, outbox, webhooks, kafka or http'],
  ['originalQueue', 'queue', 'from this queue'],
  ['signature', 'signature', 'with this error'],
  ['correlationId', 'id', 'with this correlation id'],
  ['q', 'text', 'with this text in error, ids, headers or payload'],
  ['minAttempts', 'number', 'failed at least so often'],
  ['outcome', 'outcome', 'confirmed or unconfirmed: what is known of its retry'],
]

const flagOf = (parameter: string): string =>
  `--${parameter.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** Adds a flag for each parameter, and `--query`. */
export function withFilterFlags(command: Command): Command {
  command.option('--query <query>', "in the console's words, for example 'status:pending age:>2d'")
  for (const [parameter, value, means] of FLAGS) {
    command.addOption(new Option(`${flagOf(parameter)} <${value}>`, means))
  }
  return command
}

/** The part of a help text that explains queries. */
export const QUERY_HELP = `Queries are terms key:value, and text to search for. All must hold; values with spaces stand in double quotes:
${LETTER_QUERY_KEYS.map(({ example, means }) => `  ${example.padEnd(26)} ${means}`).join('\n')}`

/** What flags, `--query` and the words of a command ask for together. Refuses what says the same twice. */
export function filterOf(flags: FilterFlags, words: readonly string[] = []): LetterParameters {
  const text = [...(flags.query === undefined ? [] : [flags.query]), ...asTerms(words)].join(' ')
  const { filter, problems } = parseLetterQuery(text, nowMs())
  if (problems.length > 0) {
    const said = problems.map(({ given, message }) => `${given}: ${message}`)
    throw new CommandFailure(EXIT.usage, `the query cannot be asked: ${said.join('; ')}`)
  }
  const found = new Map(Object.entries(filter))
  for (const [parameter] of FLAGS) {
    const given = flags[parameter]
    if (given === undefined) continue
    if (found.has(parameter)) {
      throw new CommandFailure(EXIT.usage, `${flagOf(parameter)} and the query say the same; leave one out`)
    }
    found.set(parameter, parameter === 'status' ? capitalised(given) : given)
  }
  return Object.fromEntries(found)
}

/**
 * The shell takes quotes away: of `error:"timed out"` it leaves `error:timed out`. Where there are several words, each is a
 * term, and gets its quotes back; a word that holds several terms is one that the user quoted as a whole.
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
