/** docs/outbox.md as the tests read it. */
import { readFileSync } from 'node:fs'

export const guide = readFileSync(new URL('../../docs/outbox.md', import.meta.url), 'utf8')

export interface CodeBlock {
  readonly language: string
  /** What stands behind the language, such as the file that the code is from. */
  readonly from: string
  readonly code: string
}

export const codeBlocks: readonly CodeBlock[] = Array.from(
  guide.matchAll(/^```(\w+) ?(.*)\n([\s\S]*?)^```$/gm),
  ([, language = '', from = '', code = '']) => ({ language, from, code }),
)

/** The rows of the table whose heading begins so, each as its cells. */
export function tableRows(heading: string): readonly (readonly string[])[] {
  const lines = guide.split('\n')
  const start = lines.findIndex((line) => line.startsWith(heading))
  if (start < 0) throw new Error(`docs/outbox.md has no table '${heading}'`)
  const end = lines.findIndex((line, at) => at > start && !line.startsWith('|'))
  return lines.slice(start + 2, end).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** What stands in code quotes. */
export const quoted = (text: string): readonly string[] =>
  Array.from(text.matchAll(/`([^`]+)`/g), ([, code = '']) => code)
