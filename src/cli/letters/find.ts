/** Letters of a server: page by page, how many, and one by its name. */
import { OfficeClientError } from '../../client/errors.ts'
import type { LetterDetail, LetterItem, LetterKey, LetterTotal } from '../../client/letter-types.ts'
import type { LetterParameters } from '../../core/letter-query.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import type { CallServer, OfficeServer } from '../office-call.ts'
import { printable } from '../terminal.ts'
import { listAll, queryText, walkList } from '../walk-list.ts'

/** The letters that match, the newest failure first, at most `most` of them. */
export const walkLetters = (call: CallServer, filter: LetterParameters, most?: number) =>
  walkList<LetterItem>(call, '/api/dlq', filter, most)

/** How many letters match. */
export const totalOf = (call: CallServer, filter: LetterParameters): Promise<LetterTotal> =>
  call('GET', `/api/dlq/total${queryText(filter)}`)

/** Row keys end with the time of the first failure; what does not is the name of an instance. */
const ROW_KEY = /-\d{8}T\d{12}Z$/

/** Whether it is the name of one letter, and not of an instance. */
export const isRowKey = (text: string): boolean => ROW_KEY.test(text)

/** The letter with that row key; or the only one of that instance, because lists show the instance. */
export async function letterNamed({ letters, call }: OfficeServer, key: LetterKey): Promise<LetterDetail> {
  try {
    return await letters.get(key)
  } catch (error) {
    const isUnknown = error instanceof OfficeClientError && error.code === 'letter_unknown'
    if (!isUnknown || isRowKey(key.rowKey)) throw error
    const filter = { engine: key.engine, instanceId: key.rowKey }
    const found = await listAll<LetterItem>(call, '/api/dlq', filter, MOST_NAMED)
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
