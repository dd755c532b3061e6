/** `bartleby letters retry ENGINE ROWKEY`: one letter, as it is or edited; what would be sent, or what became of it. */
import { bytesOf } from '../../client/bytes.ts'
import { OfficeClientError } from '../../client/errors.ts'
import type { LetterDetail, LetterKey, RetryPreview } from '../../client/letter-types.ts'
import { sleep } from '../../core/waiting.ts'
import { failed } from '../../terminal/exit.ts'
import { readNamed } from '../../terminal/flags.ts'
import type { Desk } from '../../terminal/office.ts'
import { type Field, fieldLines, indented } from '../../terminal/table.ts'
import type { Style } from '../../terminal/terminal.ts'
import { printable } from '../../terminal/terminal.ts'
import { firstLine } from '../../terminal/words.ts'
import { waitMsOf } from '../redrive/start.ts'
import type { ActFlags } from './act.ts'
import { diffLines, payloadText, sizeText } from './payload-text.ts'
import { letterNamed } from './which.ts'

/** Sends a letter back, or with `--dry-run` shows what would be sent. */
export async function retryOne(desk: Desk, key: LetterKey, flags: ActFlags): Promise<void> {
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

/** Its item was completed; it is dead again; nothing was heard of it. */
type Outcome = 'confirmed' | 'returned' | 'unconfirmed'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/** Waits until it is known what became of the letter, until time is over, or until Ctrl-C. */
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

/** A letter that was sent is resolved by that; if it is anything else by now, it had come back in between. */
async function outcomeNow({ letters }: Desk, letter: LetterKey): Promise<Outcome> {
  try {
    const { confirmedAtUtc, resolution } = await letters.get(letter)
    if (confirmedAtUtc !== null) return 'confirmed'
    return resolution === 'retry' ? 'unconfirmed' : 'returned'
  } catch (error) {
    // Retention removed it, or the server does not answer: it is not known. That it was sent stands all the same, and is to be told.
    if (error instanceof OfficeClientError) return 'unconfirmed'
    throw error
  }
}

/** What would be sent; of an edited payload, what differs from the one that died. */
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
