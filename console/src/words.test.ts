/** Words of the console: those that the glossary avoids, and phrases that read as if translated, stand on no screen. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const AVOIDED = [
  'Lying here',
  'Leave it',
  'cannot be asked',
  'There are none',
  'There is none',
  'not heard of yet',
  'page anew',
  'no JSON any more',
  'It is no ',
  'DLQ entry',
  'requeue a letter',
  "'Well'",
  "'Acts'",
]

const ROOT = new URL('.', import.meta.url)
const files = readdirSync(ROOT, { recursive: true, encoding: 'utf8' }).filter(
  (path) => /\.tsx?$/.test(path) && !/\.test\.tsx?$/.test(path),
)

/** Comments are for us; they may explain with any word. */
const withoutComments = (text: string): string =>
  text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')

describe('the words of the console', () => {
  const sources = files.map((path) => ({
    path,
    text: withoutComments(readFileSync(new URL(path, ROOT), 'utf8')),
  }))

  it('are read from its sources', () => {
    expect(sources.length).toBeGreaterThan(150)
  })

  it.each(AVOIDED)('do not say “%s”', (phrase) => {
    expect(sources.filter(({ text }) => text.includes(phrase)).map(({ path }) => path)).toEqual([])
  })
})
