/** `bartleby letters export` and `import`: whole letters, one JSON object per line. Importing twice files nothing twice. */
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { payloadFields } from '../../client/bytes.ts'
import { writeAnswered } from '../../client/envelope.ts'
import { OfficeClientError } from '../../client/errors.ts'
import type { CaptureRequest, LetterDetail, LetterKey } from '../../client/letter-types.ts'
import { SOURCE_NAMES } from '../../sources/commands.ts'
import { failed, reasonOf, usage } from '../../terminal/exit.ts'
import { wholeNumber } from '../../terminal/flags.ts'
import { type Desk, officeCommand, refusalText, type TextFlags } from '../../terminal/office.ts'
import { showProgress } from '../../terminal/progress.ts'
import { printable, type Terminal } from '../../terminal/terminal.ts'
import { grouped, lettersText } from '../../terminal/words.ts'
import { REPORTS, readLetter, reportOf } from './import-report.ts'
import { type FilterFlags, filterFlags, filterOf, totalOf, walkLetters } from './which.ts'

export const exportCommand = officeCommand(
  'letters export [query...]',
  'Write whole letters to stdout or a file, one JSON object per line, the newest failure first.',
  [
    "export 'status:pending engine:hmac' > hmac.ndjson",
    'export --output letters.ndjson',
    "export status:pending | jq -r 'select(.dequeueCount > 3) | .originalMessage'",
  ],
)
  .adding<FilterFlags>(filterFlags)
  .option('--output <file>', 'write to this file, which must not exist yet')
  .option('--limit <n>', 'at most so many')
  .help(`A line is what GET /api/dlq/{engine}/{rowKey} gives: case file, history, and the payload exactly: \`originalMessage\` is
text, or base64 where \`originalMessageEncoding\` says so. --json changes nothing. Progress is shown on stderr.
\`bartleby letters import\` reads such lines. Queries are explained in: bartleby letters list --help`)
  .work(async (desk, words, flags) => {
    const { terminal } = desk
    const filter = filterOf(flags, words)
    const limit = wholeNumber('--limit', flags.limit, 1)
    const { total } = await totalOf(desk, filter)
    const expected = Math.min(limit ?? total, total)
    const file = flags.output === undefined ? null : await createFile(flags.output)
    // On a terminal the letters themselves are shown.
    const progress = showProgress(
      file === null && terminal.screen !== undefined ? { err: () => {} } : terminal,
    )
    let written = 0
    try {
      const letters = walkLetters(desk, filter, limit)
      for await (const letter of mapInOrder(letters, AT_ONCE, (key) => wholeLetter(desk, key))) {
        if (letter === null) continue
        const line = Buffer.from(`${JSON.stringify(letter)}\n`)
        await (file === null ? terminal.write(line) : file.appendFile(line))
        written += 1
        progress.show('exporting', written, Math.max(expected, written), 'letters')
      }
    } finally {
      progress.end()
      await file?.close()
    }
    if (file !== null) terminal.err(`${grouped(written)} letters are in ${flags.output}`)
  })

/** Null when it was removed since it was listed. */
async function wholeLetter({ letters }: Desk, key: LetterKey): Promise<LetterDetail | null> {
  try {
    return await letters.get(key)
  } catch (error) {
    if (error instanceof OfficeClientError && error.code === 'letter_unknown') return null
    throw error
  }
}

async function createFile(path: string): Promise<FileHandle> {
  try {
    // Never over another export, which may be the only copy.
    return await open(path, 'wx')
  } catch (error) {
    throw usage(`--output cannot be written: ${reasonOf(error)}`)
  }
}

const OWN_ENGINES = SOURCE_NAMES.filter((name) => name !== REPORTS)

export const importCommand = officeCommand(
  'letters import <file>',
  'File the pending letters of an export with this server; - reads stdin.',
  [
    'import letters.ndjson',
    'import letters.ndjson --as-engine http',
    'export status:pending --url http://old:1853 | bartleby letters import - --url http://new:1853',
  ],
)
  .option('--as-engine <engine>', 'file all under this engine')
  .help(`A second import makes nothing twice: letters are known by the engine and source id that they had, and one that is on file
changes only by a failure that is later than its last. Payload, error, times,
attempts, correlation and headers come along; the history stays behind. Letters that are not pending are left out.
Letters of Bartleby's own engines (${OWN_ENGINES.join(', ')}) are filed under \`${REPORTS}\`, with where they came from in
their headers; a retry sends them to a queue of the name that they came from.

Exit codes:
  0  every pending letter is on file
  1  some were refused; the first reasons are printed
  2  wrong usage`)
  .work(importLetters)
type Filed = 'created' | 'known' | 'leftOut' | { readonly refused: string }

const SHOWN_REFUSALS = 5

async function importLetters(desk: Desk, file: string, { asEngine }: TextFlags<'asEngine'>): Promise<void> {
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
    throw failed(`${grouped(tally.refused)} were refused:${lines}${more}`)
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

/** Null for a blank line. */
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

/** Others may still be taken. */
const isAboutLetter = ({ status }: OfficeClientError): boolean =>
  status >= 400 && status < 500 && status !== 401 && status !== 403

async function capture({ endpoint }: Desk, report: CaptureRequest): Promise<'created' | 'known'> {
  const { originalMessage, ...rest } = report
  const body = { ...rest, ...payloadFields('originalMessage', originalMessage) }
  const { status } = await writeAnswered(endpoint, 'POST', '/api/dlq', body)
  return status === 201 ? 'created' : 'known'
}

const LINE_FEED = 10

/** Without line ends; a last line without one counts too. */
export async function* byteLines(stream: Readable): AsyncGenerator<Buffer, void, undefined> {
  let begun: Buffer[] = []
  for await (const given of stream) {
    const chunk: Buffer = typeof given === 'string' ? Buffer.from(given) : given
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      yield Buffer.concat([...begun, chunk.subarray(start, end)])
      begun = []
      start = end + 1
    }
    if (start < chunk.length) begun.push(chunk.subarray(start))
  }
  if (begun.length > 0) yield Buffer.concat(begun)
}

/** Calls under way at once. */
const AT_ONCE = 4

/**
 * At most `width` at a time. After a failure, or when the reader leaves early, it waits for what is under way and
 * closes the source.
 */
export async function* mapInOrder<Given, Made>(
  source: AsyncIterable<Given>,
  width: number,
  work: (given: Given) => Promise<Made>,
): AsyncGenerator<Made, void, undefined> {
  const underWay: Promise<Made>[] = []
  try {
    for await (const given of source) {
      const made = work(given)
      // Awaited in its turn: until then it is no unhandled rejection.
      made.catch(() => {})
      underWay.push(made)
      if (underWay.length < width) continue
      const first = underWay.shift()
      if (first !== undefined) yield await first
    }
    while (underWay.length > 0) {
      const first = underWay.shift()
      if (first !== undefined) yield await first
    }
  } finally {
    await Promise.allSettled(underWay)
  }
}
