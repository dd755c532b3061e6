/** Letters that are named one by one, by flags or in a file. */
import type { LetterKey } from '../../client/letter-types.ts'
import { usage } from '../exit.ts'
import { isRowKey, letterNamed } from '../letters/find.ts'
import type { OfficeServer } from '../office-call.ts'
import type { Terminal } from '../terminal.ts'
import { readNamed } from './read-argument.ts'

interface IdFlags {
  readonly id?: readonly string[]
  readonly idsFile?: string
}

/** More are refused by the server; a query can name any number. */
export const MOST_IDS = 10_000

/** The letters that the flags name; undefined when they name none. */
export async function idsOf(
  office: OfficeServer,
  { id = [], idsFile }: IdFlags,
  terminal: Terminal,
): Promise<readonly LetterKey[] | undefined> {
  if (id.length === 0 && idsFile === undefined) return undefined
  const named: LetterKey[] = []
  for (const text of id) {
    const key = keyOf(text)
    if (key === null) throw usage(`--id is '${text}'; expected ENGINE/KEY`)
    // Lists show instances: where one has a single letter, that is the letter. Of a file this would be too many questions.
    named.push(isRowKey(key.rowKey) ? key : keyOnly(await letterNamed(office, key)))
  }
  const ids = [
    ...named,
    ...(idsFile === undefined ? [] : keysIn(await readNamed('--ids-file', idsFile, terminal))),
  ]
  if (ids.length === 0) throw usage('--ids-file names no letters')
  if (ids.length > MOST_IDS)
    throw usage(`${ids.length} letters are named; name at most ${MOST_IDS}, or those that match a query`)
  return ids
}

const keyOnly = ({ engine, rowKey }: LetterKey): LetterKey => ({ engine, rowKey })

/** The letters of a file: on each line `ENGINE/KEY`, or JSON with engine and rowKey as `letters export` writes it. */
export function keysIn(text: string): readonly LetterKey[] {
  return text.split('\n').flatMap((line, index) => {
    const said = line.trim()
    if (said === '') return []
    const key = said.startsWith('{') ? keyInJson(said) : keyOf(said)
    if (key !== null) return [key]
    throw usage(
      `line ${index + 1} of --ids-file is no letter; expected ENGINE/KEY, or JSON with engine and rowKey`,
    )
  })
}

/** Engines have no slash in their names; row keys may. */
function keyOf(text: string): LetterKey | null {
  const [, engine, rowKey] = /^([^/\s]+)\/(.+)$/s.exec(text) ?? []
  return engine === undefined || rowKey === undefined ? null : { engine, rowKey }
}

function keyInJson(text: string): LetterKey | null {
  try {
    const { engine, rowKey } = JSON.parse(text)
    return typeof engine === 'string' && typeof rowKey === 'string' ? { engine, rowKey } : null
  } catch {
    return null
  }
}
