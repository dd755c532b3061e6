/** `bartleby letters export`: whole letters, one JSON object per line. */
import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import type { Command } from 'commander'
import { OfficeClientError } from '../../client/errors.ts'
import type { LetterDetail, LetterKey } from '../../client/letter-types.ts'
import { reasonOf, usage } from '../exit.ts'
import { wholeNumber } from '../flags.ts'
import { type Desk, officeCommand } from '../office.ts'
import { showProgress } from '../progress.ts'
import type { Terminal } from '../terminal.ts'
import { grouped } from '../words.ts'
import { AT_ONCE, mapInOrder } from './streams.ts'
import { type FilterFlags, filterOf, totalOf, walkLetters, withFilterFlags } from './which.ts'

interface ExportFlags extends FilterFlags {
  readonly output?: string
  readonly limit?: string
}

export const exportCommand = (terminal: Terminal): Command =>
  withFilterFlags(
    officeCommand(
      'letters export [query...]',
      'Write whole letters to stdout or a file, one JSON object per line, the newest failure first.',
      [
        "export 'status:pending engine:hmac' > hmac.ndjson",
        'export --output letters.ndjson',
        "export status:pending | jq -r 'select(.dequeueCount > 3) | .originalMessage'",
      ],
    ),
  )
    .option('--output <file>', 'write to this file, which must not exist yet')
    .option('--limit <n>', 'at most so many')
    .addHelpText(
      'after',
      `
A line is what GET /api/dlq/{engine}/{rowKey} gives: case file, history, and the payload exactly: \`originalMessage\` is
text, or base64 where \`originalMessageEncoding\` says so. --json changes nothing. Progress is shown on stderr.
\`bartleby letters import\` reads such lines. Queries are explained in: bartleby letters list --help`,
    )
    .work(terminal, exportLetters)

async function exportLetters(desk: Desk, words: readonly string[], flags: ExportFlags): Promise<void> {
  const { terminal } = desk
  const filter = filterOf(flags, words)
  const limit = wholeNumber('--limit', flags.limit, 1)
  const { total } = await totalOf(desk, filter)
  const expected = Math.min(limit ?? total, total)
  const file = flags.output === undefined ? null : await createFile(flags.output)
  // On a terminal the letters themselves are to be seen.
  const progress = showProgress(file === null && terminal.screen !== undefined ? { err: () => {} } : terminal)
  let written = 0
  try {
    const letters = walkLetters(desk, filter, limit)
    for await (const letter of mapInOrder(letters, AT_ONCE, (key) => wholeLetter(desk, key))) {
      if (letter === null) continue
      await write(file, `${JSON.stringify(letter)}\n`, terminal)
      written += 1
      progress.show('exporting', written, Math.max(expected, written), 'letters')
    }
    await closed(file)
  } finally {
    progress.end()
    file?.destroy()
  }
  if (file !== null) terminal.err(`${grouped(written)} letters are in ${flags.output}`)
}

/** null when it was removed since it was listed. */
async function wholeLetter({ letters }: Desk, key: LetterKey): Promise<LetterDetail | null> {
  try {
    return await letters.get(key)
  } catch (error) {
    if (error instanceof OfficeClientError && error.code === 'letter_unknown') return null
    throw error
  }
}

async function createFile(path: string): Promise<WriteStream> {
  // Never over another export: that may be the only copy of something.
  const file = createWriteStream(path, { flags: 'wx' })
  try {
    await once(file, 'open')
    // Whoever writes is told; without a listener a full disk would end the process in the middle of a sentence.
    file.on('error', () => {})
    return file
  } catch (error) {
    throw usage(`--output cannot be written: ${reasonOf(error)}`)
  }
}

function write(file: WriteStream | null, line: string, terminal: Terminal): Promise<void> {
  if (file === null) return terminal.write(Buffer.from(line, 'utf8'))
  return new Promise((resolve, reject) => file.write(line, (error) => (error ? reject(error) : resolve())))
}

async function closed(file: WriteStream | null): Promise<void> {
  if (file === null) return
  file.end()
  await once(file, 'close')
}
