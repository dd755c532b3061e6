/** `bartleby letters retry ENGINE ROWKEY`: one letter, as it is or edited; or what would be sent. */
import { readFile } from 'node:fs/promises'
import { bytesOf } from '../../client/bytes.ts'
import type { LetterDetail, LetterKey, RetryPreview } from '../../client/letter-types.ts'
import { CommandFailure, EXIT, reasonOf, usage } from '../exit.ts'
import type { OfficeServer } from '../office-call.ts'
import { type Style, styleOf } from '../style.ts'
import { printable, readAll, type Terminal } from '../terminal.ts'
import type { ActFlags } from './act-flags.ts'
import { letterNamed } from './find.ts'
import { waitForOutcome } from './outcome.ts'
import { diffLines } from './payload-diff.ts'
import { payloadText, sizeText } from './payload-text.ts'
import { waitTimeoutMs } from './wait-timeout.ts'

/** Sends a letter back, or with `--dry-run` shows what would be sent. */
export async function retryOne(
  office: OfficeServer,
  key: LetterKey,
  flags: ActFlags,
  terminal: Terminal,
): Promise<void> {
  const timeoutMs = waitTimeoutMs(flags.waitTimeout ?? '1m')
  const payload = await payloadOf(flags.payloadFile, terminal)
  const letter = await letterNamed(office, key)
  const request = { ...(payload && { payload }), ...(flags.notes !== undefined && { notes: flags.notes }) }
  if (flags.dryRun) {
    const preview = await office.letters.retry(letter, { ...request, dryRun: true })
    return terminal.out(
      flags.json ? JSON.stringify(preview, null, 2) : previewText(letter, preview, styleOf(terminal)),
    )
  }
  const receipt = await office.letters.retry(letter, request)
  if (!flags.json) terminal.out(printable(`sent to '${receipt.queue}' as ${receipt.messageId}`))
  const outcome = flags.wait ? await outcomeOf(office, letter, timeoutMs, terminal) : null
  if (flags.json) terminal.out(JSON.stringify(outcome === null ? receipt : { ...receipt, outcome }))
  else if (outcome === 'confirmed') terminal.out('confirmed: its item was completed')
  if (outcome === 'returned') throw new CommandFailure(EXIT.failed, await whyReturned(office, letter))
  if (outcome === 'unconfirmed') {
    throw new CommandFailure(
      EXIT.failed,
      `it is not known yet what became of it; look again with letters show`,
    )
  }
}

async function outcomeOf(office: OfficeServer, letter: LetterKey, timeoutMs: number, terminal: Terminal) {
  const stop = new AbortController()
  const end = terminal.onInterrupt(() => stop.abort())
  terminal.redraw?.('waiting until it is known what became of it …')
  try {
    return await waitForOutcome(office, letter, { timeoutMs, stop: stop.signal })
  } finally {
    terminal.redraw?.('')
    end()
  }
}

async function whyReturned({ letters }: OfficeServer, letter: LetterKey): Promise<string> {
  const { errorMessage } = await letters.get(letter)
  return `it came back: ${printable(errorMessage.split('\n', 1)[0] ?? '')}`
}

async function payloadOf(file: string | undefined, terminal: Terminal): Promise<Uint8Array | undefined> {
  if (file === undefined) return undefined
  if (file === '-') return readAll(terminal.stdin)
  try {
    return await readFile(file)
  } catch (error) {
    throw usage(`--payload-file cannot be read: ${reasonOf(error)}`)
  }
}

/** What would be sent; of an edited payload, what differs from the one that died. */
function previewText(letter: LetterDetail, preview: RetryPreview, style: Style): string {
  const bytes = bytesOf(preview.payload, preview.payloadEncoding)
  const original = bytesOf(letter.originalMessage, letter.originalMessageEncoding)
  const { kind, lines, isCut } = payloadText(bytes)
  const fields = [
    [
      'payload',
      `${sizeText(bytes, kind)}${preview.edited ? ', edited' : ''}, sha256 ${preview.payloadSha256}`,
    ],
    ['kind', preview.kind],
    ['encoding', preview.encoding],
    ['reference', preview.reference],
    ['correlation', preview.correlationId],
  ].flatMap(([name = '', value = '']) => (value === '' ? [] : [`  ${name.padEnd(14)}${printable(value)}`]))
  return [
    `would send to '${printable(preview.queue)}'; nothing was sent`,
    ...fields,
    ...(preview.edited ? diffLines(original, bytes, style) : lines).map((line) => `  ${line}`),
    ...(isCut && !preview.edited ? ['  … the rest is left out; --json shows all of it'] : []),
  ].join('\n')
}
