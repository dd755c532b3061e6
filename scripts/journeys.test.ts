/** The page that follows a letter tells what happens: its files exist, and those of a queue item are the ones that run. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const page = readFileSync(`${root}docs/follow-a-letter.md`, 'utf8')

/** The text under a heading, up to the next one of its kind. */
function under(heading: string): string {
  const kind = heading.slice(0, heading.indexOf(' ') + 1)
  const [, text] = page.split(`\n${heading}\n`)
  if (text === undefined) throw new Error(`docs/follow-a-letter.md has no '${heading}'`)
  return text.split(`\n${kind}`)[0] ?? ''
}

/** The files of a journey, in order; where one is named again it is left out. */
const filesIn = (text: string): readonly string[] => [
  ...new Set([...text.matchAll(/`([\w-]+(?:\/[\w-]+)*\/[\w-]+\.ts)`/g)].map(([, file = '']) => file)),
]

const folderOf = (file: string): string => file.slice(0, file.indexOf('/'))

/** How often the next file is in another folder. */
const switchesIn = (files: readonly string[]): number =>
  files.filter((file, i) => i > 0 && folderOf(file) !== folderOf(files[i - 1] ?? '')).length

const isUnderEverything = (file: string): boolean => ['core', 'store'].includes(folderOf(file))

describe('docs/follow-a-letter.md', () => {
  let measured: Readonly<Record<'life' | 'death', readonly string[]>>

  beforeAll(() => {
    const script = `${root}scripts/journeys.ts`
    measured = JSON.parse(execFileSync(process.execPath, [script], { cwd: root, encoding: 'utf8' }))
  })

  it('names files that exist', () => {
    const missing = filesIn(page).filter(
      (file) => !existsSync(`${root}src/${file}`) && !existsSync(root + file),
    )
    expect(missing).toEqual([])
  })

  it('tells the death of a queue item whole, in 18 files and 5 changes of folder at most', () => {
    const told = filesIn(under('### It dies'))
    expect(told.toSorted()).toEqual(measured.death.filter((file) => !isUnderEverything(file)))
    expect(told.length).toBeLessThanOrEqual(18)
    expect(switchesIn(told)).toBeLessThanOrEqual(5)
  })

  it('tells the life of a queue item from produce to confirmed, in 65 files at most', () => {
    const told = filesIn(under('## A queue item'))
    expect(told.toSorted()).toEqual(measured.life.filter((file) => !isUnderEverything(file)))
    expect(told.length).toBeLessThanOrEqual(65)
  })
})
