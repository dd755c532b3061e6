/** The same act as a command: for the command line, and for curl. */
import { formatLetterQuery } from '../../../src/core/letter-query.ts'
import { pathTo } from '../api/call.ts'
import { isSending } from '../api/redrive-types.ts'
import type { LetterKey } from '../api/types.ts'
import { type Act, filterFor } from './act.ts'
import { nameOf } from './letter-name.ts'
import type { PlanRequest } from './plan-context.ts'
import { type Draft, FRESH, rulesOf, USUAL } from './plan-draft.ts'

/** A word as a POSIX shell reads it. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

const notesFlag = (notes: string): string[] => (notes.trim() === '' ? [] : ['--notes', notes])

const command = (words: readonly string[]): string => words.map(shellWord).join(' ')

/** An act on one letter, for the command line. */
export const letterCommand = (act: Act, { engine, rowKey }: LetterKey, notes = ''): string =>
  command(['bartleby', 'letters', act, engine, rowKey, ...notesFlag(notes)])

/** More letters than these are named line by line: a command has its limits. */
const MOST_IDS = 20

/** A plan that is started at once, for the command line. */
export function redriveCommand(request: PlanRequest, draft: Draft, nowMs: number): string {
  const { act, filter, keys } = request
  const flags = ['--action', act, ...termFlags(act, draft), '--start']
  if (keys === undefined) {
    const query = formatLetterQuery(filterFor(act, filter), nowMs)
    // The command wants to know which letters; all that can be restored have two statuses.
    const queries = query === '' ? ['status:resolved', 'status:expired'] : [query]
    return queries.map((each) => command(['bartleby', 'redrive', 'plan', each, ...flags])).join('\n')
  }
  const names = keys.map(nameOf)
  if (names.length <= MOST_IDS) {
    const ids = names.flatMap((name) => ['--id', name])
    return command(['bartleby', 'redrive', 'plan', ...ids, ...flags])
  }
  const asked = command(['bartleby', 'redrive', 'plan', '--ids-file', '-', ...flags, '--yes'])
  return [`${asked} <<'END'`, ...names, 'END'].join('\n')
}

/** What is as usual is left out. */
function termFlags(act: PlanRequest['act'], draft: Draft): readonly string[] {
  const { rate, stopPercent, stopOf, order, queue, reason } = draft
  return [
    ...(act === 'move' ? ['--to', queue.trim() === '' ? 'QUEUE' : queue.trim()] : []),
    ...(rate === null ? [] : ['--rate', String(rate)]),
    ...(isSending(act)
      ? [
          ...canaryFlags(draft),
          ...(stopPercent === null ? [] : ['--stop', `${stopPercent}/${stopOf ?? USUAL.stopOf}`]),
          ...(order === FRESH.order ? [] : ['--order', order]),
          ...repairFlags(draft),
        ]
      : []),
    ...(reason.trim() === '' ? [] : ['--reason', reason]),
  ]
}

function canaryFlags({ canary, confirmPercent, waitSeconds }: Draft): readonly string[] {
  if (canary === null) return []
  return [
    '--canary',
    confirmPercent === null ? String(canary) : `${canary}:${confirmPercent}`,
    ...(waitSeconds === FRESH.waitSeconds ? [] : ['--canary-wait', `${waitSeconds}s`]),
  ]
}

function repairFlags({ payload, patch, mapping, headers }: Draft): readonly string[] {
  const { set = {}, remove = [] } = rulesOf(headers) ?? {}
  return [
    ...(payload === 'patch' ? ['--patch', patch.trim() === '' ? 'FILE' : patch.trim()] : []),
    ...(payload === 'mapping' ? ['--map', mapping.trim() === '' ? 'FILE' : mapping] : []),
    ...Object.entries(set).flatMap(([name, value]) => ['--set-header', `${name}=${value}`]),
    ...remove.flatMap((name) => ['--remove-header', name]),
  ]
}

/** A retry of one letter, for curl. The token is left to the shell: commands end up in histories. */
export function retryWithCurl({ engine, rowKey }: LetterKey, origin: string, needsToken: boolean): string {
  const url = `${origin}${pathTo('/api/dlq', engine, rowKey)}/retry`
  const token = needsToken ? ` -H "authorization: Bearer $BARTLEBY_TOKEN"` : ''
  return `curl -X POST${token} ${shellWord(url)}`
}
