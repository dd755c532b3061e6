/** A deed on all letters that match: says how many, asks, does it with a progress bar, and accounts for each. */
import type { LetterItem, LetterKey } from '../../client/letter-types.ts'
import { formatLetterQuery, type LetterParameters } from '../../core/letter-query.ts'
import { columnsText } from '../columns.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import type { OfficeServer } from '../office-call.ts'
import { grouped, showProgress } from '../progress.ts'
import { wholeNumber } from '../queues/connection.ts'
import { styleOf } from '../style.ts'
import { printable, type Terminal } from '../terminal.ts'
import { nowMs } from '../times.ts'
import { listAll } from '../walk-list.ts'
import { type ActFlags, usage, waitTimeoutMs } from './act-flags.ts'
import { confirmCount } from './confirm-count.ts'
import type { Deed } from './deeds.ts'
import { totalOf } from './find.ts'
import { letterColumns } from './list.ts'
import { actOnMany, type Result } from './many.ts'
import { type Outcomes, waitForOutcomes } from './outcomes.ts'

const PREVIEWED = 20

/** Does it to the letters that match. */
export async function actOnMatching(
  office: OfficeServer,
  deed: Deed,
  filter: LetterParameters,
  flags: ActFlags,
  terminal: Terminal,
): Promise<void> {
  if (flags.payloadFile !== undefined) throw usage('--payload-file is for one letter; name it')
  const limit = wholeNumber('--limit', flags.limit, 1)
  const waitMs = waitTimeoutMs(flags.waitTimeout ?? '1m')
  const { total, exact } = await totalOf(office.call, filter)
  const planned = limit !== undefined && limit <= total ? limit : exact ? total : null
  const count = `${grouped(planned ?? total)}${planned === null ? ' or more' : ''}`
  const plan = `${deed.will} ${count} ${filter.status?.toLowerCase()} ${planned === 1 ? 'letter' : 'letters'}`
  if (total === 0) return nothing(filter, flags, terminal)
  if (flags.dryRun) return preview(office, filter, plan, planned ?? total, flags, terminal)
  await confirmCount(
    `${plan} (${printable(formatLetterQuery(filter, nowMs()))})`,
    planned ?? total,
    flags,
    terminal,
  )

  const sent: LetterKey[] = []
  const { result, outcomes } = await interruptible(terminal, async (stop) => {
    const progress = showProgress(flags.json ? SILENT : terminal)
    try {
      const work = { deed, filter, notes: flags.notes, planned, most: limit, stop, progress }
      const remember = (letter: LetterKey) => {
        if (flags.wait) sent.push({ engine: letter.engine, rowKey: letter.rowKey })
      }
      const result = await actOnMany(office, { ...work, onDone: remember })
      const wait = { timeoutMs: waitMs, stop, progress }
      return { result, outcomes: flags.wait ? await waitForOutcomes(office, sent, wait) : null }
    } finally {
      progress.end()
    }
  })
  terminal.out(
    flags.json ? JSON.stringify(reportOf(deed, result, outcomes), null, 2) : sentence(deed, result, outcomes),
  )
  const failure = failureText(result, outcomes)
  if (failure !== null) throw new CommandFailure(EXIT.failed, failure)
}

const SILENT = { err: () => {} }

function nothing(filter: LetterParameters, { json }: ActFlags, terminal: Terminal): void {
  const empty = { planned: 0, done: 0, skipped: 0, failed: 0, left: 0, failures: [] }
  terminal.out(
    json
      ? JSON.stringify(empty, null, 2)
      : `no letters match ${printable(formatLetterQuery(filter, nowMs()))}`,
  )
}

async function preview(
  { call }: OfficeServer,
  filter: LetterParameters,
  plan: string,
  planned: number,
  { json }: ActFlags,
  terminal: Terminal,
): Promise<void> {
  const letters = await listAll<LetterItem>(call, '/api/dlq', filter, Math.min(PREVIEWED, planned))
  if (json) return terminal.out(JSON.stringify({ dryRun: true, planned, letters }, null, 2))
  const width = terminal.screen?.columns
  terminal.out(`would ${plan}; nothing was changed`)
  terminal.out(columnsText(letterColumns(nowMs()), letters, width, styleOf(terminal)))
  if (planned > letters.length) terminal.out(`… and ${grouped(planned - letters.length)} more`)
}

/** Ctrl-C lets what is under way end, so that the account is complete. */
async function interruptible<T>(terminal: Terminal, work: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const end = terminal.onInterrupt(() => stop.abort())
  try {
    return await work(stop.signal)
  } finally {
    end()
  }
}

const reportOf = (deed: Deed, { leftBecause, stopped: _, ...result }: Result, outcomes: Outcomes | null) => ({
  act: deed.name,
  ...result,
  ...(leftBecause === null ? {} : { leftBecause }),
  ...(outcomes === null ? {} : { outcomes }),
})

/** One sentence in which the numbers add up. */
function sentence(deed: Deed, result: Result, outcomes: Outcomes | null): string {
  const { planned, done, skipped, failed, left } = result
  const from = deed.from.join(' or ').toLowerCase()
  const parts = [
    `${grouped(done)} ${were(done)} ${deed.was}`,
    ...(skipped === 0 ? [] : [`${grouped(skipped)} ${were(skipped)} skipped because no longer ${from}`]),
    ...(failed === 0 ? [] : [`${grouped(failed)} failed`]),
    ...(left === 0
      ? []
      : [`${grouped(left)} ${left === 1 ? 'was left as it was' : 'were left as they were'}`]),
  ]
  const account = `of ${grouped(planned)} ${planned === 1 ? 'letter' : 'letters'} ${parts.join(', ')}`
  return outcomes === null ? account : `${account}\n${outcomesSentence(done, outcomes)}`
}

const were = (count: number): string => (count === 1 ? 'was' : 'were')

function outcomesSentence(sent: number, { confirmed, returned, unconfirmed }: Outcomes): string {
  const parts = [
    `${grouped(confirmed)} ${were(confirmed)} confirmed`,
    `${grouped(returned)} came back`,
    `${grouped(unconfirmed)} ${unconfirmed === 1 ? 'is' : 'are'} unconfirmed`,
  ]
  return `of ${grouped(sent)} sent back ${parts.join(', ')}`
}

/** What keeps the command from ending well; null when nothing does. */
function failureText(
  { failures, failed, stopped, leftBecause }: Result,
  outcomes: Outcomes | null,
): string | null {
  const shown = failures.map(
    ({ engine, rowKey, reason }) => `\n  ${printable(`${engine} ${rowKey}`)}: ${reason}`,
  )
  const more = failed > failures.length ? `\n  … and ${grouped(failed - failures.length)} more` : ''
  const reasons = [
    ...(failed === 0 ? [] : [`${grouped(failed)} failed:${shown.join('')}${more}`]),
    ...(stopped ? [leftBecause ?? 'interrupted'] : []),
    ...(outcomes === null || outcomes.returned === 0 ? [] : [`${grouped(outcomes.returned)} came back`]),
    ...(outcomes === null || outcomes.unconfirmed === 0 ? [] : ['not all outcomes are known yet']),
  ]
  return reasons.length === 0 ? null : reasons.join('; ')
}
