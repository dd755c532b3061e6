/** `bartleby letters import`: files the letters of an export, each once however often it is imported. */
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { Command } from 'commander'
import { payloadFields } from '../../client/bytes.ts'
import { writeAnswered } from '../../client/envelope.ts'
import { OfficeClientError } from '../../client/errors.ts'
import type { CaptureRequest, LetterDetail } from '../../client/letter-types.ts'
import { CommandFailure, EXIT, reasonOf, usage } from '../exit.ts'
import { type Desk, type OfficeFlags, officeCommand, refusalText } from '../office.ts'
import { showProgress } from '../progress.ts'
import { printable, type Terminal } from '../terminal.ts'
import { grouped, lettersText } from '../words.ts'
import { readLetter, reportOf } from './import-report.ts'
import { AT_ONCE, byteLines, mapInOrder } from './streams.ts'

interface ImportFlags extends OfficeFlags {
  readonly asEngine?: string
}

export const importCommand = (terminal: Terminal): Command =>
  officeCommand(
    'letters import <file>',
    'File the pending letters of an export with this server; - reads stdin.',
    [
      'import letters.ndjson',
      'import letters.ndjson --as-engine http',
      'export status:pending --url http://old:1853 | bartleby letters import - --url http://new:1853',
    ],
  )
    .option('--as-engine <engine>', 'file all under this engine')
    .addHelpText(
      'after',
      `
A second import makes nothing twice: letters are known by the engine and source id that they had, and one that is on file
changes only by a failure that is later than its last. Payload, error, times,
attempts, correlation and headers come along; the history stays behind. Letters that are not pending are left out.
Letters of Bartleby's own engines (queues, outbox, webhooks, kafka) are filed under \`http\`, with where they came from in
their headers; a retry sends them to a queue of the name that they came from.

Exit codes:
  0  every pending letter is on file
  1  some were refused; the first reasons are printed
  2  wrong usage`,
    )
    .work(terminal, importLetters)

type Filed = 'created' | 'known' | 'leftOut' | { readonly refused: string }

const SHOWN_REFUSALS = 5

async function importLetters(desk: Desk, file: string, { asEngine }: ImportFlags): Promise<void> {
  const { terminal } = desk
  const tally = { created: 0, known: 0, leftOut: 0, refused: 0 }
  const refusals: string[] = []
  const { stream, size } = await openLines(file, terminal)
  const progress = showProgress(terminal)
  let number = 0
  let readBytes = 0
  try {
    const work = async (line: Buffer) => ({ line, filed: await fileLine(desk, line, asEngine) })
    for await (const { line, filed } of mapInOrder(byteLines(stream), AT_ONCE, work)) {
      number += 1
      readBytes += line.length + 1
      if (filed === null) continue
      if (typeof filed === 'string') tally[filed] += 1
      else {
        tally.refused += 1
        if (refusals.length < SHOWN_REFUSALS) refusals.push(`line ${number}: ${filed.refused}`)
      }
      if (size !== null) progress.show('importing', readBytes, size, 'bytes')
    }
  } finally {
    progress.end()
    stream.destroy()
  }
  desk.print({ ...tally, refusals }, sentence)
  if (tally.refused > 0) {
    const more = tally.refused > refusals.length ? `\n  … and ${tally.refused - refusals.length} more` : ''
    const lines = refusals.map((each) => `\n  ${each}`).join('')
    throw new CommandFailure(EXIT.failed, `${grouped(tally.refused)} were refused:${lines}${more}`)
  }
}

function sentence(tally: { created: number; known: number; leftOut: number; refused: number }): string {
  const total = tally.created + tally.known + tally.leftOut + tally.refused
  const parts = [
    `${grouped(tally.created)} created`,
    `${grouped(tally.known)} known already`,
    ...(tally.leftOut === 0 ? [] : [`${grouped(tally.leftOut)} left out because not pending`]),
    ...(tally.refused === 0 ? [] : [`${grouped(tally.refused)} refused`]),
  ]
  return `of ${lettersText(total)}: ${parts.join(', ')}`
}

async function openLines(
  file: string,
  terminal: Terminal,
): Promise<{ stream: Readable; size: number | null }> {
  if (file === '-') return { stream: terminal.stdin, size: null }
  try {
    const handle = await open(file)
    const { size } = await handle.stat()
    return { stream: createReadStream(file, { fd: handle }), size }
  } catch (error) {
    throw usage(`the file cannot be read: ${reasonOf(error)}`)
  }
}

/** Files the letter of a line; null for a blank line. */
async function fileLine(desk: Desk, line: Buffer, engine: string | undefined): Promise<Filed | null> {
  if (line.toString('latin1').trim() === '') return null
  const read = readLetter(line)
  if (read.kind === 'unreadable') return { refused: read.reason }
  if (read.letter.status !== 'Pending') return 'leftOut'
  try {
    return await capture(desk, reportOf(read.letter, engine))
  } catch (error) {
    if (!(error instanceof OfficeClientError) || !isAboutLetter(error)) throw error
    return { refused: `${named(read.letter)}: ${refusalText(error)}` }
  }
}

const named = ({ engine, rowKey }: LetterDetail): string => printable(`${engine} ${rowKey}`)

/** Refused as it is, while others may be taken. */
const isAboutLetter = ({ status }: OfficeClientError): boolean =>
  status >= 400 && status < 500 && status !== 401 && status !== 403

async function capture({ endpoint }: Desk, report: CaptureRequest): Promise<'created' | 'known'> {
  const { originalMessage, ...rest } = report
  const body = { ...rest, ...payloadFields('originalMessage', originalMessage) }
  const { status } = await writeAnswered(endpoint, 'POST', '/api/dlq', body)
  return status === 201 ? 'created' : 'known'
}
