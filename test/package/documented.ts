/** The TypeScript of README and docs, block by block. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface DocumentedCode {
  /** Page and line, as a name for a file. */
  readonly name: string
  /** The file that the code is from, where the page says so. */
  readonly from: string
  readonly code: string
}

/** All blocks of the pages of an installed package. */
export function documentedCode(installed: string): readonly DocumentedCode[] {
  const pages = readdirSync(join(installed, 'docs')).filter((name) => name.endsWith('.md'))
  return ['README.md', ...pages.map((name) => `docs/${name}`)].flatMap((page) => {
    const text = readFileSync(join(installed, page), 'utf8')
    return Array.from(text.matchAll(/^```ts ?(.*)\n([\s\S]*?)^```$/gm), (match) => {
      const [, from = '', code = ''] = match
      const line = text.slice(0, match.index).split('\n').length
      return { name: `${page.replaceAll(/\W/g, '-')}-${line}`, from, code }
    })
  })
}

/** The only block that contains all of these words. */
export function codeWith(blocks: readonly DocumentedCode[], ...words: readonly string[]): string {
  const found = blocks.filter(({ code }) => words.every((word) => code.includes(word)))
  const [only] = found
  if (only === undefined || found.length > 1)
    throw new Error(`${found.length} blocks instead of one contain ${words.join(' and ')}`)
  return only.code
}
