import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { byteLines } from './byte-lines.ts'

const linesOf = async (...chunks: string[]) => {
  const lines: string[] = []
  for await (const line of byteLines(Readable.from(chunks.map((chunk) => Buffer.from(chunk))))) {
    lines.push(line.toString())
  }
  return lines
}

it('ends lines at line feeds only, wherever chunks end', async () => {
  expect(await linesOf('a\u2028b\r', 'c\nde', '', 'f\n\nlast')).toEqual(['a\u2028b\rc', 'def', '', 'last'])
  expect(await linesOf('a\n')).toEqual(['a'])
  expect(await linesOf()).toEqual([])
})
