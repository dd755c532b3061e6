/** `bartleby letters retry|discard|restore|expire`: one letter by name, all that match a query, or old ones. */
import { bytesOf } from '../../client/bytes.ts'
import { OfficeClientError } from '../../client/errors.ts'
import type { LetterDetail, LetterKey, LetterStatus, RetryPreview } from '../../client/letter-types.ts'
import { formatLetterQuery, type LetterParameters } from '../../core/letter-query.ts'
import { sleep } from '../../core/waiting.ts'
import { failed, usage } from '../../terminal/exit.ts'
import { confirmCount, readNamed, wholeNumber } from '../../terminal/flags.ts'
import { type Desk, officeCommand, type TextFlags } from '../../terminal/office.ts'
import { type Field, fieldLines, indented } from '../../terminal/table.ts'
import { printable, type Style } from '../../terminal/terminal.ts'
import { firstLine, grouped, nowMs, secondsOf } from '../../terminal/words.ts'
import { confirmPlan, makePlan } from '../redrive/plan.ts'
import { type Chosen, MOST_IDS, planBody } from '../redrive/plan-flags.ts'
import { seeThrough, waitMsOf } from '../redrive/start.ts'
import { planText } from '../redrive/text.ts'
import { diffLines, payloadText, sizeText } from './payload-text.ts'
import { type FilterFlags, filterFlags, filterOf, letterNamed, totalOf, walkLetters } from './which.ts'

interface ActFlags extends FilterFlags, TextFlags<'notes' | 'limit' | 'waitTimeout' | 'payloadFile'> {
  readonly yes?: boolean
  readonly dryRun?: boolean
  readonly wait?: boolean
}

interface Deed {
  readonly name: 'retry' | 'discard' | 'restore'
  /** "It was {was}." */
  readonly was: string
  /** Statuses that it starts from. */
  readonly from: readonly LetterStatus[]
  /** Left out: a retry, which takes more than one call. */
  readonly perform?: (desk: Desk, letter: LetterKey, notes: string | undefined) => Promise<unknown>
}

const RETRY: Deed = { name: 'retry', was: 'retried', from: ['Pending'] }

const DISCARD: Deed = {
  name: 'discard',
  was: 'discarded',
  from: ['Pending'],
  perform: ({ letters }, letter, notes = '') => letters.discard(letter, notes),
}

const RESTORE: Deed = {
  name: 'restore',
  was: 'restored',
  from: ['Resolved', 'Expired'],
  perform: ({ letters }, letter, notes) => letters.restore(letter, notes),
}

const manyCommand = ({ name }: Deed, description: string, examples: readonly string[]) =>
  officeCommand(`letters ${name} [engine] [rowKey]`, description, examples)
    .adding<FilterFlags>(filterFlags)
    .option('--limit <n>', 'many letters: at most so many, the newest first')
    .option('-y, --yes', 'many letters: do not ask')

const MANY_HELP = `Many letters are a redrive of the server: it plans which they are, the command says how many and asks (--yes answers), starts it and
watches it to its end. Ctrl-C leaves it running, and says how to look again or to cancel it. A rate, a few letters first, an
order, a repair: bartleby redrive plan --help. Queries are explained in: bartleby letters list --help`

export const retryCommand = manyCommand(
  RETRY,
  'Send letters back to where they came from, as they are or one of them edited.',
  [
    'retry hmac i-7-20270110T090000000000000000004711Z --dry-run          what would be sent',
    'retry hmac i-7-20270110T090000000000000000004711Z --wait             until it is confirmed, or comes back',
    'retry hmac i-7-20270110T090000000000000000004711Z --payload-file fixed.json --notes "amount was a text"',
    'retry --query \'queue:orders error:"connection reset"\' --dry-run',
    'retry --query \'queue:orders error:"connection reset"\' --limit 10 --wait',
    'retry --query \'queue:orders error:"connection reset"\' --yes',
  ],
)
  .option('--notes <text>', 'why; kept in the history of each letter')
  .option('--dry-run', 'send nothing; show what would be sent, and how an edit differs')
  .option('--payload-file <file>', 'one letter: send this payload instead; - reads stdin')
  .option('--wait', 'wait until it is known what became of what was sent')
  .option('--wait-timeout <duration>', 'how long at most', '1m')
  .help(`${MANY_HELP}

Exit codes:
  0  all that was to be sent is sent; with --wait, confirmed
  1  something failed, came back, or is not known yet
  2  wrong usage
  3  there is no such letter`)
  .work((desk, ...given) => act(RETRY, desk, ...given))

export const discardCommand = manyCommand(
  DISCARD,
  'End pending letters without sending them back; they can be restored.',
  [
    'discard hmac i-7-20270110T090000000000000000004711Z --notes "test data"',
    "discard --query 'signature:1-4f2a9c age:>30d' --notes 'shop closed' --yes",
  ],
)
  .needed('--notes <text>', 'why; kept with each letter')
  .option('--dry-run', 'many letters: change nothing; show the plan')
  .help(MANY_HELP)
  .work((desk, ...given) => act(DISCARD, desk, ...given))

export const restoreCommand = manyCommand(RESTORE, 'Make resolved or expired letters pending again.', [
  'restore hmac i-7-20270110T090000000000000000004711Z',
  "restore --query 'status:expired engine:hmac' --notes 'still needed'",
])
  .option('--notes <text>', 'why; kept in the history of each letter')
  .option('--dry-run', 'many letters: change nothing; show the plan')
  .help(`A letter that was retried can be restored until its item is being worked on: the item is taken back first.
${MANY_HELP}`)
  .work((desk, ...given) => act(RESTORE, desk, ...given))

async function act(
  deed: Deed,
  desk: Desk,
  engine: string | undefined,
  rowKey: string | undefined,
  flags: ActFlags,
): Promise<void> {
  if (deed === DISCARD && flags.notes?.trim() === '')
    throw usage('--notes is blank; say why the letters are discarded')
  const target = targetOf(deed, [engine, rowKey], flags)
  if ('filter' in target) return actOnMatching(desk, deed.name, target.filter, flags)
  if (deed.perform === undefined) return retryOne(desk, target, flags)
  if (flags.dryRun) throw usage('--dry-run is for many letters here; see one with letters show')
  const letter = await letterNamed(desk, target)
  const changed = await deed.perform(desk, letter, flags.notes)
  desk.print(changed, () => printable(`${letter.engine} ${letter.rowKey} was ${deed.was}`))
}

async function retryOne(desk: Desk, key: LetterKey, flags: ActFlags): Promise<void> {
  const { letters, terminal, json, print } = desk
  const waitMs = waitMsOf(flags)
  const { payloadFile: file, notes } = flags
  const payload = file === undefined ? undefined : await readNamed('--payload-file', file, terminal)
  const letter = await letterNamed(desk, key)
  const request = { ...(payload && { payload }), ...(notes !== undefined && { notes }) }
  if (flags.dryRun) {
    const preview = await letters.retry(letter, { ...request, dryRun: true })
    return print(preview, (_, style) => previewText(letter, preview, style))
  }
  const receipt = await letters.retry(letter, request)
  if (!json) terminal.out(printable(`sent to '${receipt.queue}' as ${receipt.messageId}`))
  const outcome = waitMs === null ? null : await outcomeOf(desk, letter, waitMs)
  if (json) terminal.out(JSON.stringify(outcome === null ? receipt : { ...receipt, outcome }))
  else if (outcome === 'confirmed') terminal.out('confirmed: its item was completed')
  if (outcome === 'returned') {
    const { errorMessage } = await letters.get(letter)
    throw failed(`it came back: ${printable(firstLine(errorMessage))}`)
  }
  if (outcome === 'unconfirmed') {
    throw failed(`it is not known yet what became of it; look again with letters show`)
  }
}

/** Item completed; dead again; nothing heard. */
type Outcome = 'confirmed' | 'returned' | 'unconfirmed'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/** Until the outcome is known, time is over, or Ctrl-C. */
async function outcomeOf(desk: Desk, letter: LetterKey, waitMs: number): Promise<Outcome> {
  const { terminal } = desk
  const stop = new AbortController()
  const end = terminal.onInterrupt(() => stop.abort())
  terminal.redraw?.('waiting until it is known what became of it …')
  const deadlineMs = performance.now() + waitMs
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      const outcome = await outcomeNow(desk, letter)
      const leftMs = deadlineMs - performance.now()
      if (outcome !== 'unconfirmed' || leftMs <= 0 || stop.signal.aborted) return outcome
      await sleep(Math.min(pauseMs, leftMs), stop.signal)
    }
  } finally {
    terminal.redraw?.('')
    end()
  }
}

/** A letter that was sent is resolved by that; anything else means that it came back. */
async function outcomeNow({ letters }: Desk, letter: LetterKey): Promise<Outcome> {
  try {
    const { confirmedAtUtc, resolution } = await letters.get(letter)
    if (confirmedAtUtc !== null) return 'confirmed'
    return resolution === 'retry' ? 'unconfirmed' : 'returned'
  } catch (error) {
    // Removed by retention, or no answer: not known. That it was sent is still to be reported.
    if (error instanceof OfficeClientError) return 'unconfirmed'
    throw error
  }
}

/** Of an edited payload, the difference from the original. */
function previewText(letter: LetterDetail, preview: RetryPreview, style: Style): string {
  const bytes = bytesOf(preview.payload, preview.payloadEncoding)
  const original = bytesOf(letter.originalMessage, letter.originalMessageEncoding)
  const { kind, lines, isCut } = payloadText(bytes)
  const size = `${sizeText(bytes, kind)}${preview.edited ? ', edited' : ''}`
  const fields: readonly Field[] = [
    ['payload', `${size}, sha256 ${preview.payloadSha256}`],
    ['kind', preview.kind],
    ['encoding', preview.encoding],
    ['reference', preview.reference],
    ['correlation', preview.correlationId],
  ]
  return [
    `would send to '${printable(preview.queue)}'; nothing was sent`,
    ...indented(fieldLines(fields, 14)),
    ...indented(preview.edited ? diffLines(original, bytes, style) : lines),
    ...(isCut && !preview.edited ? ['  … the rest is left out; --json shows all of it'] : []),
  ].join('\n')
}

function targetOf(
  deed: Deed,
  [engine, rowKey]: readonly (string | undefined)[],
  flags: ActFlags,
): LetterKey | { readonly filter: LetterParameters } {
  const filter = filterOf(flags)
  const isFiltered = Object.keys(filter).length > 0
  if (engine !== undefined) {
    if (rowKey === undefined) throw usage(`'${engine}' is no letter; name one by engine and row key`)
    if (isFiltered) throw usage('name one letter, or many by a query or filters, not both')
    return { engine, rowKey }
  }
  const example = `--query 'status:${deed.from[0]?.toLowerCase()}'`
  if (!isFiltered) throw usage(`name a letter by engine and row key, or many by a query such as ${example}`)
  return { filter: withStatus(deed, filter) }
}

/** The status need not be given where there is only one. */
function withStatus({ name, was, from }: Deed, filter: LetterParameters): LetterParameters {
  const [first = 'Pending', ...others] = from
  const status = filter.status ?? (others.length === 0 ? first : undefined)
  const needed = from.map((each) => each.toLowerCase())
  if (status === undefined) {
    throw usage(`say which letters to ${name}: ${needed.map((each) => `status:${each}`).join(' or ')}`)
  }
  if (!from.some((each) => each === status)) {
    throw usage(`only ${needed.join(' and ')} letters can be ${was}, and the filter asks for ${status}`)
  }
  return { ...filter, status }
}

const PREVIEWED = 3

const NOTHING = { numbers: { matched: 0 }, counts: { planned: 0 } }

/** As a redrive of the server: planned, agreed to, started and watched to its end. */
async function actOnMatching(
  desk: Desk,
  action: 'retry' | 'discard' | 'restore',
  filter: LetterParameters,
  flags: ActFlags,
): Promise<void> {
  const { terminal, redrives, print } = desk
  if (flags.payloadFile !== undefined) throw usage('--payload-file is for one letter; name it')
  const waitMs = waitMsOf(flags)
  const chosen = await chosenOf(desk, filter, flags.limit)
  const none = () => `no letters match ${printable(formatLetterQuery(filter, nowMs()))}`
  if ('ids' in chosen && chosen.ids.length === 0) return print(NOTHING, none)
  const { notes } = flags
  const terms = { action, ...(notes !== undefined && { reason: notes }) }
  const plan = await makePlan(desk, planBody(chosen, terms, undefined))
  if (plan.numbers.matched === 0) return print(plan, none)
  if (flags.dryRun) {
    const shown = { letters: PREVIEWED, width: terminal.screen?.columns }
    return print(plan, (_, style) => `${planText(plan, { ...shown, style })}\n\nnothing was changed`)
  }
  if (plan.counts.planned === 0) throw failed(printable(plan.sentence))
  await confirmPlan(plan, flags, terminal)
  await seeThrough(desk, await redrives.start(plan.id), waitMs)
}

/** With a limit, the newest by name. */
async function chosenOf(
  desk: Desk,
  filter: LetterParameters,
  limitText: string | undefined,
): Promise<Chosen> {
  const limit = wholeNumber('--limit', limitText, 1)
  if (limit === undefined) return { filter }
  if (limit > MOST_IDS)
    throw usage(`--limit is '${limit}'; expected at most ${MOST_IDS}, or none for all that match`)
  const ids: LetterKey[] = []
  for await (const { engine, rowKey } of walkLetters(desk, filter, limit)) ids.push({ engine, rowKey })
  return { ids }
}

const DAY_MS = 86_400_000

export const expireCommand = officeCommand(
  'letters expire',
  'Give up pending letters that failed last more than so many days ago; they can be restored for as long as they are kept.',
  ['expire --older-than-days 90', 'expire --older-than-days 30 --engine hmac --yes'],
)
  .needed('--older-than-days <n>', 'at least 1')
  .option('--engine <engine>', 'only of this engine')
  .option('-y, --yes', 'do not ask')
  .help(`Expired letters are kept for \`engines.tables.retentionDays\` (90) from now on, however long ago they failed, and can be restored
until then: bartleby letters restore --query status:expired. The command says until when.`)
  .work(async (desk, flags) => {
    const olderThanDays = wholeNumber('--older-than-days', flags.olderThanDays, 1)
    const engine = flags.engine === undefined ? {} : { engine: flags.engine }
    const toDate = new Date(nowMs() - olderThanDays * DAY_MS).toISOString()
    const { total, exact } = await totalOf(desk, { ...engine, status: 'Pending', toDate })
    const of = flags.engine === undefined ? '' : ` of engine '${printable(flags.engine)}'`
    const plan = `expire ${grouped(total)}${exact ? '' : ' or more'} pending letters${of}`
    if (total === 0) return desk.printLine({ expired: 0 }, 'no pending letters are that old')
    const until = await restorableUntil(desk)
    await confirmCount(`${plan}; they can be restored until ${until}`, total, flags, desk.terminal)
    const expired = await desk.letters.expireOlder({ olderThanDays, ...engine })
    const sentence = `${grouped(expired)} letters were expired; they can be restored until ${until}`
    desk.printLine({ expired }, sentence)
  })

async function restorableUntil({ call }: Desk): Promise<string> {
  const { retentionDays } = await call<{ readonly retentionDays: number }>('GET', '/api/settings')
  return secondsOf(new Date(nowMs() + retentionDays * DAY_MS).toISOString())
}
