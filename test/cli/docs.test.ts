/** docs/cli.md: every command in it exists, with the flags that are used there. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { bartleby } from '../world/terminal-double.ts'

const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')

/** Each use of the program, without what is said about it; two of them may stand in a pipe. */
const uses = [...page.matchAll(/^\$ (bartleby .*)$/gm)]
  .flatMap(([, line = '']) => line.replace(/ {2,}#.*$/, '').split(' | '))
  .filter((use) => use.startsWith('bartleby '))

/** Groups of commands; the second word is a command too. */
const GROUPS = [
  'letters',
  'redrive',
  'runs',
  'signatures',
  'history',
  'queues',
  'outbox',
  'webhooks',
  'kafka',
  'token',
  'config',
  'azure',
]

const wordsOf = (use: string): string[] => {
  const [, group = '', command = ''] = use.split(' ')
  return GROUPS.includes(group) && /^[a-z]+$/.test(command) ? [group, command] : [group]
}

it('names commands and flags that there are', async () => {
  expect(uses.length).toBeGreaterThan(40)
  for (const use of uses) {
    const { code, out } = await bartleby([...wordsOf(use), '--help'])
    expect({ use, code, usage: out.split('\n')[0] }).toMatchObject({
      use,
      code: 0,
      usage: expect.stringContaining(`bartleby ${wordsOf(use).join(' ')} `),
    })
    for (const [flag] of use.matchAll(/--[a-z-]+/g))
      expect({ use, flags: out }).toMatchObject({ flags: expect.stringContaining(flag) })
  }
})

it('names every command of the program', async () => {
  const { out } = await bartleby(['--help'])
  const names = [...out.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = '']) => name)
  expect(names).toContain('letters')
  for (const name of names.filter((each) => each !== 'help')) expect(page).toContain(`bartleby ${name}`)
})
