/** The same act as a command: for the command line, and for curl. */
import { formatLetterQuery } from '../../../src/core/letter-query.ts'
import { pathTo } from '../api/call.ts'
import type { LetterFilter, LetterKey } from '../api/types.ts'
import type { Act } from './run.ts'

/** A word as a POSIX shell reads it. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

const notesFlag = (notes: string): string[] => (notes.trim() === '' ? [] : ['--notes', notes])

const command = (words: readonly string[]): string => words.map(shellWord).join(' ')

/** An act on one letter, for the command line. */
export const letterCommand = (act: Act, { engine, rowKey }: LetterKey, notes = ''): string =>
  command(['bartleby', 'letters', act, engine, rowKey, ...notesFlag(notes)])

/** An act on all letters of a list, for the command line. `limit` where it is not all of them. */
export function walkCommand(
  act: Act,
  filter: LetterFilter,
  { notes = '', limit = null, nowMs }: { notes?: string; limit?: number | null; nowMs: number },
): string {
  const query = formatLetterQuery(filter, nowMs)
  const most = limit === null ? [] : ['--limit', String(limit)]
  return command(['bartleby', 'letters', act, '--query', query, ...notesFlag(notes), ...most, '--yes'])
}

/** A retry of one letter, for curl. The token is left to the shell: commands end up in histories. */
export function retryWithCurl({ engine, rowKey }: LetterKey, origin: string, needsToken: boolean): string {
  const url = `${origin}${pathTo('/api/dlq', engine, rowKey)}/retry`
  const token = needsToken ? ` -H "authorization: Bearer $BARTLEBY_TOKEN"` : ''
  return `curl -X POST${token} ${shellWord(url)}`
}
