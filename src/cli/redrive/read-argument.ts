/** What a flag names: a file, stdin or the text itself. */
import { readFile } from 'node:fs/promises'
import { reasonOf, usage } from '../exit.ts'
import { readAll, type Terminal } from '../terminal.ts'

/** The text of that file; `-` is stdin. */
export async function readNamed(
  flag: string,
  file: string,
  { stdin }: Pick<Terminal, 'stdin'>,
): Promise<string> {
  try {
    const bytes = file === '-' ? await readAll(stdin) : await readFile(file)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw usage(`${flag} cannot be read: ${reasonOf(error)}`)
  }
}
